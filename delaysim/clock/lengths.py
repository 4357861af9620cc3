"""Response lengths for a clock that runs alone: drawn from a law, in keyed blocks of groups."""

from dataclasses import dataclass
from math import log, sqrt
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from delaysim.rng import stream

BLOCK = 1024
"""Groups drawn from one keyed generator; one generator per group alone would cost more than the clock."""

Lengths2D = NDArray[np.int64]


class LengthLaw(Protocol):
    """Anything that draws response lengths."""

    def draw(self, rng: np.random.Generator, groups: int, group_size: int) -> Lengths2D:
        """Lengths [groups, group_size] in tokens. A smaller group_size gives a prefix of the columns."""
        ...


@dataclass(frozen=True)
class Lognormal:
    """Lognormal lengths, part of whose log-variance is shared by the responses to one prompt."""

    mean: float
    """Mean before the cap [tokens]."""
    sigma: float
    """Standard deviation of the log-length."""
    prompt_share: float
    """Share of the log-variance that the G responses of a group have in common, 0..1."""
    cap: int
    """Longest possible response [tokens]."""

    def draw(self, rng: np.random.Generator, groups: int, group_size: int) -> Lengths2D:
        shared = rng.standard_normal(groups)
        own = np.stack([rng.standard_normal(groups) for _ in range(group_size)], axis=1)
        z = sqrt(self.prompt_share) * shared[:, None] + sqrt(1.0 - self.prompt_share) * own
        lengths = np.exp(log(self.mean) - self.sigma**2 / 2 + self.sigma * z)
        return np.clip(np.rint(lengths), 1, self.cap).astype(np.int64)


@dataclass(frozen=True)
class Empirical:
    """Lengths drawn with replacement from recorded ones."""

    recorded: NDArray[np.int64]
    """Lengths [tokens], any number of them."""

    def draw(self, rng: np.random.Generator, groups: int, group_size: int) -> Lengths2D:
        picks = [rng.integers(len(self.recorded), size=groups) for _ in range(group_size)]
        return self.recorded[np.stack(picks, axis=1)]


class KeyedLengths:
    """The lengths of every group of a stream, drawn block by block and kept."""

    def __init__(self, law: LengthLaw, group_size: int, seed: int, name: str = "lengths") -> None:
        self._law, self._group_size, self._seed, self._name = law, group_size, seed, name
        self._blocks: list[Lengths2D] = []
        self._longest: list[int] = []

    def longest(self, groups: range) -> list[int]:
        """Longest response [tokens] of each group."""
        while len(self._longest) < groups.stop:
            rng = stream(self._seed, self._name, len(self._blocks))
            self._blocks.append(self._law.draw(rng, BLOCK, self._group_size).astype(np.int32))
            self._longest.extend(self._blocks[-1].max(axis=1).tolist())
        return self._longest[groups.start : groups.stop]

    def table(self, groups: int) -> Lengths2D:
        """Lengths [groups, G] of the first `groups` groups."""
        self.longest(range(groups))
        empty = np.empty((0, self._group_size), np.int32)
        return np.concatenate([empty, *self._blocks])[:groups]
