"""Exact tests over seeds by sign flips: no normality, and a floor on p that few seeds cannot pass."""

from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
MOST_SEEDS = 20
"""2^19 flips; with more seeds t serves."""
TIE = 1e-12
"""Of |sum| over its largest value: sums of the same numbers in another order count as equal, sums of 0 too."""


def sign_flip(x: ArrayLike) -> float:
    """Exact two-sided p that paired differences `x` (seeds,) are symmetric about 0 (Fisher 1935, sec. 21).

    Share of the 2^S sign patterns whose |mean| is at least the observed: never below 2^(1-S), so that 5 seeds
    cannot reach .05. Raises ValueError for no seed, more than MOST_SEEDS, or a number that is not finite.
    """
    return float(max_t(np.asarray(x, dtype=float)[:, None])[0])


def max_t(x: ArrayLike) -> Array:
    """p-values of a family `x` (seeds, comparisons), corrected by the largest |t| over all sign flips of whole seeds.

    Step-down (Westfall and Young 1993, algorithm 2.8): exact control of the family-wise error whatever the
    comparisons' correlation, given symmetry. Returns (comparisons,). Raises ValueError as `sign_flip`.
    """
    table = np.asarray(x, dtype=float)
    if table.ndim != 2 or not 1 <= len(table) <= MOST_SEEDS or not np.isfinite(table).all():
        raise ValueError(f"finite differences of 1 to {MOST_SEEDS} seeds x comparisons, not {table.shape}")
    flipped = _flipped(table)
    order = np.argsort(-flipped[0], kind="stable")
    successive = np.maximum.accumulate(flipped[:, order[::-1]], axis=1)[:, ::-1]
    p = (successive >= flipped[0, order] - TIE).mean(0)
    adjusted: Array = np.empty(len(p))
    adjusted[order] = np.maximum.accumulate(p)
    return adjusted


def _flipped(table: Array) -> Array:
    """|sum|/sqrt(S sum of squares) of every sign pattern, the observed first: (flips, comparisons).

    It grows with |t| and is finite where t is not. The first seed keeps its sign: |t| is the same with all flipped.
    """
    signs = np.array(list(product((1.0, -1.0), repeat=len(table) - 1))).reshape(2 ** (len(table) - 1), -1)
    scale = np.sqrt(len(table) * (table**2).sum(0))
    sums = np.abs(np.column_stack([np.ones(len(signs)), signs]) @ table)
    return np.asarray(np.divide(sums, scale, out=np.zeros_like(sums), where=scale > 0))
