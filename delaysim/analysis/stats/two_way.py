"""Seeds and problems both random: means over a seeds x problems table (a two-way crossed random-effects model)."""

from collections.abc import Sequence
from math import nan

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delaysim.analysis.stats.clusters import Labels, cluster_sums, numbered
from delaysim.analysis.stats.estimates import CONFIDENCE, Components, Estimate, estimate

Array = NDArray[np.float64]
ROUNDING = 1e-14
"""A mean's standard error below this share of the largest number is rounding."""


def crossed(d: ArrayLike, clusters: Labels | None = None, confidence: float = CONFIDENCE) -> Estimate:
    """Mean of `d` (seeds, problems) with the interval that covers other seeds and other problems.

    `d` holds paired differences or scores; `clusters` labels problems that share a stem and count as one draw.
    With u[s, g] = K/Q * (sum over problems of cluster g of d[s, q] - d[s, .]) + d[s, .], K clusters of Q problems,
    the mean squares of the (S, K) table u are those of the balanced two-way layout without replication, and
    Var(mean) = max(MS_S + MS_K - MS_E, MS_S, MS_K)/(S K), with t of Satterthwaite's degrees of freedom. One seed:
    the clustered interval over problems (Miller 2024, sec. 2.2), without p. One cluster: t over seeds.
    Raises ValueError for a table that is not two-dimensional, empty, or not finite.
    """
    table = as_table(d)
    return estimate(float(table.mean()), components([table], [clusters], [1.0]), confidence)


def paired_questions(d: ArrayLike, clusters: Labels | None = None, confidence: float = CONFIDENCE) -> Estimate:
    """Mean of one seed's paired differences `d` (problems,); the interval says nothing of other seeds, p is NaN."""
    return crossed(np.asarray(d, dtype=float)[None, :], clusters, confidence)


def over_seeds(x: ArrayLike, confidence: float = CONFIDENCE) -> Estimate:
    """Mean of one number per seed `x` (seeds,), t with S - 1 degrees of freedom. Everything but the mean NaN at S = 1.

    Problems are taken as fixed: the answer holds for these problems only.
    """
    return crossed(np.asarray(x, dtype=float)[:, None], confidence=confidence)


def components(tables: Sequence[Array], clusters: Sequence[Labels | None], weights: Sequence[float]) -> Components:
    """Variance components of sum over sets of weight * mean, sets as strata.

    `tables` has one (seeds, problems) array per set, all over the same seeds. Deviations are from the own set's mean
    of the own seed, so that no effect of a seed that is alike over problems leaks into the residual where clusters
    differ in size; those of a cluster that stands in several sets are added before they are squared.
    """
    seeds = len(tables[0])
    index, count = numbered([table.shape[1] for table in tables], clusters)
    by_set = [_deviations(*of, count) for of in zip(tables, index, weights, strict=True)]
    summed = np.sum(by_set, axis=0)
    of_seeds = np.sum([w * table.mean(1) for table, w in zip(tables, weights, strict=True)], axis=0)
    squares = np.sum(summed.mean(0) ** 2), np.sum((summed - summed.mean(0)) ** 2)
    noise = (ROUNDING * max(float(np.abs(table).max()) for table in tables)) ** 2
    return Components(
        by_seed=_above(noise, of_seeds.var(ddof=1) / seeds) if seeds > 1 else nan,
        by_question=_above(noise, squares[0]),
        by_both=_above(noise, squares[1] / (seeds * (seeds - 1))) if seeds > 1 else nan,
        seeds=seeds,
        clusters=count,
        question_df=_question_df([float(np.sum(u.mean(0) ** 2)) for u in by_set], [_distinct(i) for i in index]),
    )


def _above(noise: float, variance: float) -> float:
    """A variance, 0 where it is no more than the rounding of equal numbers."""
    return 0.0 if variance <= noise else float(variance)


def _deviations(table: Array, index: NDArray[np.intp], weight: float, count: int) -> Array:
    """Weighted deviations from each seed's mean, summed by cluster: (seeds, clusters). NaN for a set of one cluster."""
    own = _distinct(index)
    scale = weight / table.shape[1] * np.sqrt(own / (own - 1)) if own > 1 else nan
    return cluster_sums(scale * (table - table.mean(1, keepdims=True)), index, count)


def _distinct(index: NDArray[np.intp]) -> int:
    return len(set(index.tolist()))


def _question_df(variances: Sequence[float], counts: Sequence[int]) -> float:
    """Satterthwaite over the sets: K - 1 for one set, few where a small set has most of the variance."""
    spread = sum(v**2 / (count - 1) for v, count in zip(variances, counts, strict=True) if count > 1)
    return sum(variances) ** 2 / spread if spread > 0 else float(sum(count - 1 for count in counts))


def as_table(d: ArrayLike) -> Array:
    """`d` as a finite (seeds, problems) array. Raises ValueError."""
    table = np.asarray(d, dtype=float)
    if table.ndim != 2 or not table.size:
        raise ValueError(f"a table of seeds x problems, not an array of shape {table.shape}")
    if not np.isfinite(table).all():
        raise ValueError("a score or difference is not finite: leave out the seed or the problem that has none")
    return table
