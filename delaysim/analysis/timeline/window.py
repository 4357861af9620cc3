"""A stretch of simulated time, asked for or chosen."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from delaysim.analysis.timeline.record import Record, Ticks
from delaysim.clock import TICKS, to_ticks
from delaysim.errors import UserError


@dataclass(frozen=True)
class Window:
    """From `start` to `end` [ticks]."""

    start: int
    end: int

    @property
    def units(self) -> tuple[float, float]:
        """The same in simulated units."""
        return self.start / TICKS, self.end / TICKS

    def overlapping(self, start: Ticks, end: Ticks) -> Ticks:
        """Numbers of the intervals [start, end) that reach into it; NEVER starts none."""
        return np.flatnonzero((start >= 0) & (start < self.end) & ((end > self.start) | (start >= self.start)))

    def holds(self, ticks: Ticks) -> NDArray[np.bool_]:
        """Which instants lie in it, its ends included."""
        return (ticks >= self.start) & (ticks <= self.end)


def whole(record: Record) -> Window:
    """The run."""
    return Window(0, record.stop)


def asked(record: Record, start: float | None, end: float | None) -> Window:
    """The window between two times [units], None for an end of the run. Raises UserError where it is empty."""
    stop = record.stop / TICKS
    low, high = 0.0 if start is None else start, stop if end is None else end
    if not 0 <= low < min(high, stop):
        raise UserError(f"--from {low:g} --to {high:g}: give two times in order within the run, 0 to {stop:g} units")
    return Window(to_ticks(low), min(to_ticks(min(high, stop)), record.stop))


def steady_start(record: Record) -> int:
    """Poll of the first update of the steady state; the run's start where it does not get there."""
    return 0 if record.steady_update is None else int(record.poll[record.steady_update])


def held(record: Record, start: int, most: int) -> Window:
    """The longest window from `start` [tick] that at most `most` groups overlap; empty where more are out at once."""
    begun = np.sort(record.groups["launch"][record.groups["launch"] >= 0])
    gone = int((record.until <= start).sum())
    return Window(start, int(begun[gone + most]) if gone + most < len(begun) else record.stop)


def views(record: Record) -> list[tuple[str, Window]]:
    """Two stretches long enough to see groups come and go: the run's start and its steady state, or the whole run."""
    took = np.median(record.until - record.groups["launch"])
    span = int(2 * took + 4 * record.stop / len(record.publish))
    steady = steady_start(record)
    if 2 * span >= record.stop:
        return [("the whole run", whole(record))]
    first = ("the start", Window(0, span))
    if steady < span or steady + span > record.stop:
        return [first, ("the end", Window(record.stop - span, record.stop))]
    return [first, ("the steady state", Window(steady, steady + span))]
