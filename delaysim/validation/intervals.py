"""Means of a simulated series, with the error that its own correlation leaves."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t

BATCHES = 30
"""Batches of consecutive values, each long enough to be nearly independent of the next."""


class Measured(NamedTuple):
    """A simulated value, and the standard error of its mean over batches; None where there is no chance in it."""

    value: float
    error: float | None = None

    def half_width(self, level: float) -> float:
        """Of the interval at that level [0..1]."""
        return 0.0 if self.error is None else float(t.ppf(0.5 + level / 2, BATCHES - 1)) * self.error


def batch_means(values: ArrayLike, warm_up: float = 0.1) -> Measured:
    """Mean of a series in the order in which it came about, without its first share `warm_up`."""
    series: NDArray[np.float64] = np.asarray(values, np.float64)
    series = series[int(len(series) * warm_up) :]
    size = len(series) // BATCHES
    if not size:
        raise ValueError(f"{len(series)} values are too few for {BATCHES} batches")
    means = series[: size * BATCHES].reshape(BATCHES, size).mean(axis=1)
    return Measured(float(means.mean()), float(means.std(ddof=1) / BATCHES**0.5))
