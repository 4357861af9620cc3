"""Which of many choices nobody has to regret: faster costs delay, fresher costs speed."""

from collections.abc import Sequence


def front(points: Sequence[tuple[float, float]]) -> list[bool]:
    """For each (speed, delay): whether no other is at least as fast and as fresh, and better in one of the two."""
    return [not any(_dominates(other, point) for other in points) for point in points]


def _dominates(a: tuple[float, float], b: tuple[float, float]) -> bool:
    return a[0] >= b[0] and a[1] <= b[1] and a != b
