"""Robust aggregates over seeds and sets (Agarwal et al. 2021)."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import trim_mean

Array = NDArray[np.float64]


def iqm(x: ArrayLike) -> Array:
    """Interquartile mean of scores: a quarter cut off at each end, over the last two axes (..., seeds, sets) together.

    One axis (seeds,) is taken whole. A collapsed seed can fall among those cut: print the count of collapses with it.
    """
    scores = np.asarray(x, dtype=float)
    flat = scores.reshape(*scores.shape[:-2], -1)
    return np.asarray(trim_mean(flat, 0.25, axis=-1))


def probability_of_improvement(a: ArrayLike, b: ArrayLike) -> Array:
    """P(A > B) + P(A = B)/2 of a random seed of each, `a` (..., seeds) and `b` (..., other seeds): (...,).

    Average it over sets. Seeds are not paired here.
    """
    first, second = np.asarray(a, dtype=float)[..., :, None], np.asarray(b, dtype=float)[..., None, :]
    return np.asarray(((first > second) + 0.5 * (first == second)).mean((-2, -1)))
