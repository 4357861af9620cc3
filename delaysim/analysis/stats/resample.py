"""Bootstrap over seeds and clusters of problems, both resampled independently (crossed)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from delaysim.analysis.stats.clusters import Labels, cluster_sums, numbered
from delaysim.analysis.stats.estimates import CONFIDENCE

Array = NDArray[np.float64]
Statistic = Callable[[Array], Array]
Method = Literal["percentile", "bca"]
DRAWS = 10_000
ENOUGH_SEEDS = 5
AT_ONCE = 4_000_000
"""Numbers held at a time."""


@dataclass(frozen=True)
class Interval:
    """A statistic and its bootstrap interval."""

    value: float
    low: float
    high: float
    confidence: float
    seeds: int

    @property
    def too_few_seeds(self) -> bool:
        """Below ENOUGH_SEEDS the interval is too narrow, whatever the draws; a t interval over seeds is not."""
        return self.seeds < ENOUGH_SEEDS


def bootstrap(
    d: ArrayLike,
    statistic: Statistic | None,
    rng: np.random.Generator,
    draws: int = DRAWS,
    clusters: Labels | None = None,
    confidence: float = CONFIDENCE,
    method: Method = "percentile",
) -> Interval:
    """Interval of a statistic of means over seeds and problems.

    `d` is (..., seeds, problems), the leading axes cells (estimators, delays, updates) of the same seeds and problems;
    `statistic` maps their means (draws, ...) to (draws,), and None is the mean of a single (seeds, problems) table.
    So differences of areas or of D_r come from the same resamples. Each draw resamples whole seeds and whole clusters
    (McCullagh 2000; Owen 2007, who shows that the seed x problem part then counts up to three times over: wide, where
    that part rules); the seeds' part is (S-1)/S of its size. "bca" corrects bias and skew (Efron 1987, acceleration
    of two samples) and needs a finite statistic; "percentile" takes inf. Raises ValueError as `resampled_means`.
    """
    of = statistic or (lambda means: means)
    table = _checked(d)
    (index,), count = numbered([table.shape[-1]], [clusters])
    sums, sizes = _summed(table, index, count), np.bincount(index, minlength=count).astype(float)
    value = of(_means(sums, sizes, np.ones((1, table.shape[-2])), np.ones((1, count))))[0]
    values = of(resampled_means(table, rng, draws, clusters))
    tails = np.array([(1 - confidence) / 2, (1 + confidence) / 2])
    if method == "bca":
        tails = _bca(tails, values, float(value), [of(means) for means in _jackknife(sums, sizes)])
    low, high = np.quantile(values, tails[0], method="lower"), np.quantile(values, tails[1], method="higher")
    return Interval(float(value), float(low), float(high), confidence, table.shape[-2])


def bootstrap_seeds(
    x: ArrayLike, statistic: Statistic, rng: np.random.Generator, draws: int = DRAWS, confidence: float = CONFIDENCE
) -> Interval:
    """Percentile interval of a statistic of scores `x` (seeds, ...), such as `iqm`: seeds resampled, problems fixed.

    `statistic` maps (draws, seeds, ...) to (draws,). A seed brings its scores on all sets along: they are one run.
    """
    scores = np.asarray(x, dtype=float)
    values = statistic(scores[rng.integers(len(scores), size=(draws, len(scores)))])
    low = np.quantile(values, (1 - confidence) / 2, method="lower")
    high = np.quantile(values, (1 + confidence) / 2, method="higher")
    return Interval(float(statistic(scores[None])[0]), float(low), float(high), confidence, len(scores))


def resampled_means(
    d: ArrayLike, rng: np.random.Generator, draws: int = DRAWS, clusters: Labels | None = None
) -> Array:
    """Means of `draws` crossed resamples of `d` (..., seeds, problems): (draws, ...).

    Raises ValueError for numbers that are not finite and labels that do not fit.
    """
    table = _checked(d)
    (index,), count = numbered([table.shape[-1]], [clusters])
    sums, sizes = _summed(table, index, count), np.bincount(index, minlength=count).astype(float)
    step = max(1, AT_ONCE // (count + table.shape[-2]))
    parts = [min(step, draws - start) for start in range(0, draws, step)]
    return np.concatenate([
        _means(sums, sizes, _counts(rng, part, table.shape[-2]), _counts(rng, part, count)) for part in parts
    ])  # fmt: skip


def _means(sums: Array, sizes: Array, seed_weights: Array, cluster_weights: Array) -> Array:
    """Means under weights (draws, seeds) and (draws, clusters): (draws, ...)."""
    cells = sums.reshape(-1, *sums.shape[-2:])
    total = np.stack([np.einsum("dk,dk->d", seed_weights @ cell, cluster_weights) for cell in cells], axis=-1)
    weight = seed_weights.sum(1) * (cluster_weights @ sizes)
    return np.asarray((total / weight[:, None]).reshape(-1, *sums.shape[:-2]))


def _counts(rng: np.random.Generator, draws: int, n: int) -> Array:
    """How often each of n is drawn in n draws with replacement: (draws, n)."""
    flat = rng.integers(n, size=(draws, n)) + np.arange(draws)[:, None] * n
    return np.bincount(flat.ravel(), minlength=draws * n).reshape(draws, n).astype(float)


def _jackknife(sums: Array, sizes: Array) -> list[Array]:
    """Means with one seed left out, and with one cluster left out, where two or more are there."""
    seeds, count = sums.shape[-2:]
    without = [(1 - np.eye(seeds), np.ones((seeds, count))), (np.ones((count, seeds)), 1 - np.eye(count))]
    return [_means(sums, sizes, *weights) for weights, n in zip(without, (seeds, count), strict=True) if n > 1]


def _bca(tails: Array, values: Array, value: float, left_out: list[Array]) -> Array:
    """The levels at which BCa reads the resamples (Efron and Tibshirani 1993, eq. 14.10 and 14.15 by samples)."""
    influence = [(len(u) - 1) * (u.mean() - u) / len(u) for u in left_out]
    spread = sum(float(np.sum(u**2)) for u in influence)
    skew = sum(float(np.sum(u**3)) for u in influence)
    share = np.mean(values < value) + np.mean(values == value) / 2
    if not spread > 0 or not 0 < share < 1:
        return tails
    shift, z = ndtri(share), ndtri(tails)
    acceleration = skew / (6 * spread**1.5)
    return np.asarray(ndtr(shift + (shift + z) / (1 - acceleration * (shift + z))))


def _checked(d: ArrayLike) -> Array:
    table = np.asarray(d, dtype=float)
    if table.ndim < 2 or not table.size or not np.isfinite(table).all():
        raise ValueError(f"finite numbers of seeds x problems on the last two axes, not {table.shape}")
    return table


def _summed(table: Array, index: NDArray[np.intp], count: int) -> Array:
    """Sums by cluster: (..., seeds, clusters)."""
    return cluster_sums(table.reshape(-1, table.shape[-1]), index, count).reshape(*table.shape[:-1], count)
