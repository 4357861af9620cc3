"""Length laws that make the clock's durations a wanted service time of mean 1: so many tokens are one unit."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

UNIT = 1_000_000
"""Tokens of one unit: a token is a tick, and rounding is nothing."""
LONGEST = 2**31 - 1
"""The clock keeps lengths in 32 bits."""


@dataclass(frozen=True)
class Service:
    """Service times that are drawn anew for every response; an implementation of `LengthLaw`."""

    times: Callable[[np.random.Generator, tuple[int, int]], NDArray[np.float64]]

    def draw(
        self, rng: np.random.Generator, groups: int, group_size: int, again: np.random.Generator | None = None
    ) -> NDArray[np.int64]:
        tokens = np.rint(UNIT * self.times(again or rng, (groups, group_size)))
        whole: NDArray[np.int64] = np.clip(tokens, 1, LONGEST).astype(np.int64)
        return whole


EXPONENTIAL = Service(lambda rng, shape: rng.standard_exponential(shape))
CONSTANT = Service(lambda rng, shape: np.ones(shape))


def lognormal(sigma: float) -> Service:
    """Mean 1, standard deviation of the logarithm `sigma`."""

    def times(rng: np.random.Generator, shape: tuple[int, int]) -> Any:
        return rng.lognormal(-(sigma**2) / 2, sigma, shape)

    return Service(times)
