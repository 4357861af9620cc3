"""Problems that share a stem and count as one draw."""

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Labels = Sequence[Hashable] | NDArray[np.generic]
"""One label per problem."""


def numbered(sizes: Sequence[int], labels: Sequence[Labels | None]) -> tuple[list[NDArray[np.intp]], int]:
    """Cluster numbers of the problems of sets of these sizes, and how many clusters there are.

    A label that stands in several sets is one cluster; without labels (None) every problem is its own. Raises
    ValueError for another number of labels than problems.
    """
    numbers: dict[Hashable, int] = {}
    found = []
    for which, (size, of) in enumerate(zip(sizes, labels, strict=True)):
        keys = [("", which, q) for q in range(size)] if of is None else list(of)
        if len(keys) != size:
            raise ValueError(f"{len(keys)} cluster labels for {size} problems")
        found.append(np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.intp))
    return found, len(numbers)


def cluster_sums(table: Array, index: NDArray[np.intp], count: int) -> Array:
    """Sums of a (rows, problems) table by cluster number: (rows, count)."""
    flat = np.arange(len(table))[:, None] * count + index
    summed = np.bincount(flat.ravel(), weights=table.ravel(), minlength=len(table) * count)
    return summed.astype(float, copy=False).reshape(-1, count)
