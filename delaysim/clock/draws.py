"""The clock's own random numbers, each keyed by what it is for: equal for every setting that asks for it."""

from collections import deque
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from delaysim.rng import stream

BLOCK = 1024
"""Numbers drawn from one keyed generator."""


class Draws:
    """Numbers of one seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._uniforms = cache(self._block)

    def uniform(self, name: str, index: int, attempt: int = 0) -> float:
        """In [0, 1), the `index`-th of its name and attempt."""
        block, place = divmod(index, BLOCK)
        return float(self._uniforms(name, attempt, block)[place])

    def exponential(self, name: str, index: int, attempt: int = 0) -> float:
        """With mean 1."""
        return float(-np.log1p(-self.uniform(name, index, attempt)))

    def pick(self, name: str, index: int, among: Sequence[int] | deque[int], count: int) -> list[int]:
        """`count` different ones, in the order in which they stand."""
        places = stream(self._seed, name, index).choice(len(among), size=count, replace=False)
        return [among[place] for place in sorted(places.tolist())]

    def _block(self, name: str, attempt: int, block: int) -> NDArray[np.float64]:
        return stream(self._seed, name, attempt, block).random(BLOCK)
