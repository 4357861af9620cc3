"""Many comparisons at once."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """p-values (family,) corrected by Holm (1979): the i-th smallest of m times m - i + 1, never falling, at most 1.

    NaN (no test: one seed) stays NaN and does not count into the family.
    """
    raw = np.asarray(p, dtype=float)
    adjusted = np.full_like(raw, np.nan)
    tested = np.flatnonzero(~np.isnan(raw))
    order = tested[np.argsort(raw[tested], kind="stable")]
    scaled = raw[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(scaled))
    return adjusted
