"""Several sets of problems side by side: three averages over them, each with a crossed interval."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delaysim.analysis.stats.clusters import Labels, cluster_sums, numbered
from delaysim.analysis.stats.estimates import CONFIDENCE, Estimate, estimate
from delaysim.analysis.stats.two_way import as_table, components

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SideBySide:
    """One comparison over several sets, averaged three ways."""

    macro: Estimate
    """Each set alike: 40 problems weigh as much as 1,319."""
    item_weighted: Estimate
    """Each problem alike."""
    deduplicated: Estimate
    """Each cluster of problems once, wherever it stands."""
    sets: dict[str, Estimate]
    """Each set alone."""


def over_sets(
    tables: Mapping[str, ArrayLike], clusters: Mapping[str, Labels] | None = None, confidence: float = CONFIDENCE
) -> SideBySide:
    """Means of paired differences (or scores) over sets; `tables` holds one (seeds, problems) array per set.

    All over the same seeds in the same order; a cluster label that stands in two sets brings their covariance. Sets
    are strata: they are not drawn, other problems of these sets are. Raises ValueError for no set, a set of one
    cluster (its share of the error is unknown), or different numbers of seeds.
    """
    found = {name: as_table(table) for name, table in tables.items()}
    if len({len(table) for table in found.values()}) != 1:
        raise ValueError(f"sets over different seeds: { {name: len(table) for name, table in found.items()} }")
    labels = [None if clusters is None else clusters[name] for name in found]
    values, sizes = list(found.values()), [table.shape[1] for table in found.values()]
    alone = [_mean([table], [of], [1.0], confidence) for table, of in zip(values, labels, strict=True)]
    for name, own in zip(found, alone, strict=True):
        if own.clusters < 2:
            raise ValueError(f"set {name} has one cluster of problems: no error can be told")
    strata = _once(values, labels)
    return SideBySide(
        macro=_mean(values, labels, [1 / len(sizes)] * len(sizes), confidence),
        item_weighted=_mean(values, labels, _shares(values), confidence),
        deduplicated=_mean(strata, [None] * len(strata), _shares(strata), confidence),
        sets=dict(zip(found, alone, strict=True)),
    )


def _mean(
    tables: Sequence[Array], labels: Sequence[Labels | None], weights: Sequence[float], confidence: float
) -> Estimate:
    centre = sum(w * float(table.mean()) for w, table in zip(weights, tables, strict=True))
    return estimate(centre, components(tables, labels, weights), confidence)


def _shares(tables: Sequence[Array]) -> list[float]:
    """Of each table in the columns of all."""
    total = sum(table.shape[1] for table in tables)
    return [table.shape[1] / total for table in tables]


def _once(tables: Sequence[Array], labels: Sequence[Labels | None]) -> list[Array]:
    """Means of clusters over all sets they stand in, one (seeds, clusters) table for each combination of sets.

    Combinations with a single cluster, which show no spread, are one table with the largest.
    """
    index, count = numbered([table.shape[1] for table in tables], labels)
    flat = np.concatenate(index)
    means = cluster_sums(np.concatenate(tables, axis=1), flat, count) / np.bincount(flat)
    strata: dict[tuple[bool, ...], list[int]] = {}
    stands = np.array([np.isin(np.arange(count), numbers) for numbers in index]).T
    for cluster, sets in enumerate(stands.tolist()):
        strata.setdefault(tuple(sets), []).append(cluster)
    largest, *others = sorted(strata.values(), key=len, reverse=True)
    joined = sorted([*largest, *(cluster for few in others if len(few) == 1 for cluster in few)])
    return [means[:, columns] for columns in (joined, *(many for many in others if len(many) > 1))]
