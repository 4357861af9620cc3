"""Learning curves and curves over delay as single numbers; curves lie on the last axis."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def auc(y: ArrayLike, x: ArrayLike) -> Array:
    """Area under `y` (..., points) over `x` (points,) by trapezoids, over the width of x: a mean height, (...,).

    Raises ValueError unless x grows and has two points.
    """
    at = _growing(x)
    return np.asarray(np.trapezoid(np.asarray(y, dtype=float), at, axis=-1) / (at[-1] - at[0]))


def _growing(x: ArrayLike) -> Array:
    at = np.asarray(x, dtype=float)
    if at.ndim != 1 or len(at) < 2 or not (np.diff(at) > 0).all():
        raise ValueError("x has two points or more, each above the one before")
    return at
