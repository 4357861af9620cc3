"""Learning curves and curves over delay as single numbers; curves lie on the last axis."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def auc(y: ArrayLike, x: ArrayLike) -> Array:
    """Area under `y` (..., points) over `x` (points,) by trapezoids, over the width of x: a mean height, (...,).

    Raises ValueError unless x grows and has two points.
    """
    at = growing(x)
    return np.asarray(np.trapezoid(np.asarray(y, dtype=float), at, axis=-1) / (at[-1] - at[0]))


def value_at(y: ArrayLike, x: ArrayLike, where: float) -> Array:
    """Height of `y` (..., points) at `where`, linear between points: curves read at one budget. NaN outside x."""
    at, heights = growing(x), np.asarray(y, dtype=float)
    if not at[0] <= where <= at[-1]:
        return np.full(heights.shape[:-1], np.nan)
    right = max(1, int(np.searchsorted(at, where)))
    part = (where - at[right - 1]) / (at[right] - at[right - 1])
    return np.asarray((1 - part) * heights[..., right - 1] + part * heights[..., right])


def updates_to(y: ArrayLike, x: ArrayLike, level: float) -> Array:
    """First x at which `y` (..., points) reaches `level`, linear between points; inf where it does not within x.

    x is updates, trajectories, tokens or time. inf is a censored answer: it sorts after every number, and a mean with
    it is inf, where leaving such runs out would favour what fails.
    """
    over = np.asarray(y, dtype=float) - level
    return _crossing(over, over >= 0, growing(x))


def delay_at(accuracy: ArrayLike, delays: ArrayLike, retention: float) -> Array:
    """D_r: the largest delay up to which accuracy >= retention * accuracy at the first delay, linear between points.

    `accuracy` (..., delays). Where a curve falls and rises again, the first fall counts. inf where it never falls
    below: the grid ends too early to say. Raises ValueError unless 0 < retention <= 1.
    """
    if not 0 < retention <= 1:
        raise ValueError(f"retention {retention} lies above 0 and is at most 1")
    y = np.asarray(accuracy, dtype=float)
    under = retention * y[..., :1] - y
    return _crossing(under, under > 0, growing(delays))


def retention(accuracy: ArrayLike) -> Array:
    """acc(D)/acc(0) of `accuracy` (..., delays), first delay 0: (..., delays)."""
    y = np.asarray(accuracy, dtype=float)
    return np.asarray(y / y[..., :1])


def gain_kept(accuracy: ArrayLike, base: float) -> Array:
    """(acc(D) - base)/(acc(0) - base): how much of what training gains over the base model is left at each delay."""
    return retention(np.asarray(accuracy, dtype=float) - base)


def share_of_gain(first: float, middle: float, last: float) -> float:
    """(last - middle)/(last - first): the part of a gain that the second of two changes brings."""
    return (last - middle) / (last - first)


def growing(x: ArrayLike) -> Array:
    """X (points,) as an array. Raises ValueError unless it grows and has two points."""
    at = np.asarray(x, dtype=float)
    if at.ndim != 1 or len(at) < 2 or not (np.diff(at) > 0).all():
        raise ValueError("x has two points or more, each above the one before")
    return at


def _crossing(gap: Array, reached: NDArray[np.bool_], x: Array) -> Array:
    """Where `gap` (..., points), linear between points, passes 0 on its way to the first point reached; inf if none."""
    right = reached.argmax(-1)[..., None]
    left = np.maximum(right - 1, 0)
    before, after = (np.take_along_axis(gap, at, -1)[..., 0] for at in (left, right))
    rise = np.where(right[..., 0] > left[..., 0], after - before, 1.0)
    found = x[left[..., 0]] + (x[right[..., 0]] - x[left[..., 0]]) * -before / rise
    return np.asarray(np.where(reached.any(-1), found, np.inf))
