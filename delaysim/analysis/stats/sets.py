"""Several sets of problems side by side: the macro average and the item-weighted one, both with crossed intervals."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from delaysim.analysis.stats.clusters import Labels
from delaysim.analysis.stats.crossed import as_table, components
from delaysim.analysis.stats.estimate import CONFIDENCE, Estimate, estimate


@dataclass(frozen=True)
class SideBySide:
    """One comparison over several sets, averaged both ways."""

    macro: Estimate
    """Each set alike: 40 problems weigh as much as 1,319."""
    item_weighted: Estimate
    """Each problem alike."""
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
    labels = [None if clusters is None else clusters[name] for name in found]
    if len({len(table) for table in found.values()}) != 1:
        raise ValueError(f"sets over different seeds: { {name: len(table) for name, table in found.items()} }")
    alone = {
        name: estimate(float(table.mean()), components([table], [of], [1.0]), confidence)
        for (name, table), of in zip(found.items(), labels, strict=True)
    }
    for name, own in alone.items():
        if own.clusters < 2:
            raise ValueError(f"set {name} has one cluster of problems: no error can be told")
    sizes = np.array([table.shape[1] for table in found.values()])

    def mean(weights: list[float]) -> Estimate:
        centre = sum(w * own.mean for w, own in zip(weights, alone.values(), strict=True))
        return estimate(centre, components(list(found.values()), labels, weights), confidence)

    return SideBySide(mean([1 / len(sizes)] * len(sizes)), mean([float(n / sizes.sum()) for n in sizes]), alone)
