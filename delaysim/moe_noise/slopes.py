"""How the spread of a log-ratio goes with the length it is averaged or summed over. No torch."""

from typing import NamedTuple

import numpy as np

from delaysim.analysis.stats import bootstrap
from delaysim.moe_noise.parts import Array
from delaysim.rng import stream

SHORTEST = 8
"""[tokens]; below it the tails of single tokens rule."""


DRAWS = 2000
"""Resamples of an interval."""


class Slope(NamedTuple):
    """Of log standard deviation against log length, with its bootstrap interval over sequences."""

    value: float
    low: float
    high: float

    def of_sum(self) -> "Slope":
        """The same of the sum in place of the mean: a sum of n is n times their mean."""
        return Slope(*(value + 1 for value in self))


def lengths(longest: int) -> list[int]:
    """The longest, its half, its quarter, ... ascending."""
    found = [longest]
    while found[0] // 2 >= SHORTEST:
        found.insert(0, found[0] // 2)
    return found


def slope_of_mean(log_ratio: Array, seed: int, about_zero: bool = False) -> Slope | None:
    """Of the mean of n consecutive tokens, log_ratio [sequences, T]: -1/2 for noise that is independent by token.

    The blocks of a sequence are drawn together. `about_zero`: the root mean square in place of the standard deviation;
    it is the distance from ratio 1 that thresholds see. None where the log-ratio does not vary.
    """
    if not np.ptp(log_ratio) > 0:
        return None
    sizes = lengths(log_ratio.shape[1])
    cells = np.stack([_moments(log_ratio, size) for size in sizes]).transpose(0, 2, 1)[:, :, None, :]
    along = np.log(sizes) - np.mean(np.log(sizes))

    def fitted(means: Array) -> Array:
        centre = 0.0 if about_zero else means[..., 0]
        variance = np.maximum(means[..., 1] - centre**2, np.finfo(float).tiny)
        return np.asarray(0.5 * np.log(variance) @ along / (along @ along))

    rng = stream(seed, "moe_noise/bootstrap")
    found = bootstrap(cells, fitted, rng, DRAWS, method="bca")  # resampled spreads are low
    return Slope(found.value, found.low, found.high)


def _moments(log_ratio: Array, size: int) -> Array:
    """[sequences, 2] mean and mean square of the means of a sequence's blocks of this size."""
    sequences, longest = log_ratio.shape
    blocks = longest // size
    means = log_ratio[:, : blocks * size].reshape(sequences, blocks, size).mean(-1)
    return np.stack([means.mean(1), (means**2).mean(1)], 1)
