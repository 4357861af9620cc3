"""The experts that a sampler's decoding used, step by step, put together by response."""

from collections.abc import Sequence

import numpy as np
import torch

from delaysim.policy.rollout import Routes
from delaysim.policy.routing import MISSING, Routing


class Trail:
    """Reads a model's routers after its prefill, when it is made, and after each step."""

    def __init__(self, routing: Routing, prompts: Sequence[int], repeat: int) -> None:
        """`prompts`: their lengths [tokens], left-padded in the prefill; `repeat` responses go on from each."""
        self._routing, self._repeat = routing, repeat
        experts = routing.chosen().unflatten(0, (len(prompts), -1))
        self._prompts = [table[table.shape[0] - n :].numpy() for table, n in zip(experts, prompts, strict=True)]
        self._steps: list[tuple[list[int], torch.Tensor]] = []

    def step(self, rows: Sequence[int]) -> None:
        """One token of each of these responses has gone through the model."""
        self._steps.append((list(rows), self._routing.chosen()))

    def routes(self, lengths: Sequence[int]) -> list[Routes]:
        """Of each response of this many tokens, its last one having gone nowhere."""
        like = self._prompts[0]
        table = np.full((len(lengths), len(self._steps), *like.shape[1:]), MISSING, np.int16)
        for step, (rows, experts) in enumerate(self._steps):
            table[rows, step] = experts.numpy()
        return [
            np.concatenate((self._prompts[row // self._repeat], table[row, : length - 1]))
            for row, length in enumerate(lengths)
        ]
