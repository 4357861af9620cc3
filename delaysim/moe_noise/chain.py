"""The text that is learned and scored: a first-order Markov chain. No torch."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from delaysim.moe_noise.setting import GROUP, VOCABULARY
from delaysim.rng import stream

CONCENTRATION = 0.3
"""Of the Dirichlet law of each token's successors: a few are likely, none is impossible."""
TOPICS, STAY = 4, 0.98
"""Tokens belong to topics, and text stays in one for some 50 tokens: sequences differ, as they do in real text."""

Tokens = NDArray[np.int32]


@dataclass(frozen=True)
class MarkovChain:
    """The same for the same seed."""

    seed: int

    def draw(self, name: str, key: int, sequences: int, length: int) -> Tokens:
        """[sequences, length] from stream `name` at `key`; the first token is uniform."""
        rng = stream(self.seed, name, key)
        uniform = rng.random((sequences, length))
        tokens = np.empty((sequences, length), np.int32)
        tokens[:, 0] = uniform[:, 0] * VOCABULARY
        cumulated = self.successors().cumsum(1)
        for t in range(1, length):
            below = cumulated[tokens[:, t - 1], :-1] <= uniform[:, t, None]
            tokens[:, t] = below.sum(1)
        return tokens

    def successors(self) -> NDArray[np.float64]:
        """[token, next token] probabilities."""
        rng = stream(self.seed, "moe_noise/successors")
        weights = rng.gamma(CONCENTRATION, size=(VOCABULARY, VOCABULARY))
        topic = np.arange(VOCABULARY) % TOPICS
        within = np.where(topic[:, None] == topic, weights, 0)
        return STAY * within / within.sum(1, keepdims=True) + (1 - STAY) * weights / weights.sum(1, keepdims=True)

    def rewards(self, responses: Iterable[Tokens]) -> NDArray[np.float64]:
        """[groups, G] 1 where a response ends with a rewarded token, else 0."""
        rewarded = self.rewarded()
        return np.array([float(rewarded[response[-1]]) for response in responses]).reshape(-1, GROUP)

    def rewarded(self) -> NDArray[np.bool_]:
        """[token] half of the vocabulary."""
        rng = stream(self.seed, "moe_noise/rewarded")
        return rng.permutation(VOCABULARY) < VOCABULARY // 2
