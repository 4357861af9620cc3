"""One closed form, the simulation that has to give it, and when it is missed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from delaysim.validation.intervals import Measured

CONFIDENCE = 0.95
"""Chance that a right simulator misses none of the checks, with seeds drawn anew (Bonferroni)."""


@dataclass(frozen=True)
class Check:
    """A value known in closed form."""

    law: str
    setting: str
    what: str
    """The quantity."""
    expected: float
    measure: Callable[[], Measured]
    tolerance: float = 0.0
    """How far beyond its interval the closed form may lie, in the unit of the value."""
    quick: bool = False
    """Whether it is made with --quick."""


@dataclass(frozen=True)
class Outcome:
    """A check that was made."""

    check: Check
    measured: Measured
    level: float
    """Of the interval, 0..1."""

    @cached_property
    def half_width(self) -> float:
        """Of the interval around the simulated value; 0 where no chance is in it."""
        return self.measured.half_width(self.level)

    @property
    def error(self) -> float:
        """Simulated less expected."""
        return self.measured.value - self.check.expected

    @property
    def passed(self) -> bool:
        """Whether the closed form lies in the interval, widened by the tolerance; 1e-9 is for sums of floats."""
        rounding = 1e-9 * abs(self.check.expected)
        return abs(self.error) <= self.half_width + self.check.tolerance + rounding


def outcomes(checks: Sequence[Check], family: int) -> Iterator[Outcome]:
    """Make the checks one by one; each interval is at the level that `family` of them need together."""
    level = 1 - (1 - CONFIDENCE) / family
    for check in checks:
        yield Outcome(check, check.measure(), level)
