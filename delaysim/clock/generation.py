"""Groups in generation: each with a duration of its own, or as responses that share an engine."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, Protocol

from simpy import Event

from delaysim.clock.draws import Draws
from delaysim.clock.engine import Engine
from delaysim.clock.events import COMPLETION, LIMIT, Events, Occurrence
from delaysim.clock.law import Law, to_ticks
from delaysim.clock.ledger import NEVER, Ledger
from delaysim.clock.steps import Size

Told = Callable[[int], None]
Ended = Callable[[Event], None]
"""Told with an event whose value is the group."""


class Generation(Protocol):
    """Where launched groups are until they are generated."""

    @property
    def free(self) -> int | None:
        """Groups that can be launched now; None = any number."""
        ...

    def begin(self, groups: range, sizes: Iterable[Size | None]) -> None:
        """Take in a launch."""
        ...

    def cut(self, group: int) -> None:
        """Give up a group, where it is still in generation."""
        ...


class Timers:
    """Every group ends after the law's duration of its size."""

    def __init__(self, law: Law, events: Events, ledger: Ledger, draws: Draws, ended: Ended, late: Told) -> None:
        self._law, self._events, self._ledger, self._draws = law, events, ledger, draws
        self._ended, self._late, self._dropped = ended, late, ledger.dropped
        self._ticks_of = cache(law.duration)
        self._timeout = None if law.timeout is None else to_ticks(law.timeout)
        self._varies = bool(law.noise) or law.start == "stagger"
        watched = law.workers is not None or law.abort_age is not None
        self._end = self._ended_or_cut if watched else ended
        self._running = 0  # goes down only where it is watched

    @property
    def free(self) -> int | None:
        return None if self._law.workers is None else self._law.workers - self._running

    def begin(self, groups: range, sizes: Iterable[Size | None]) -> None:
        due, now, ticks_of, end, timeout = self._ledger.due, self._events.now, self._ticks_of, self._end, self._timeout
        schedule, varies = self._events.schedule, self._varies
        self._running += len(groups)
        for group, size in zip(groups, sizes, strict=True):
            if size is not None:
                ticks = ticks_of(size)
                if varies:
                    ticks = self._varied(group, ticks, now)
                due[group] = now + ticks
                if timeout is None or ticks <= timeout:
                    schedule(Occurrence(end, group), COMPLETION, ticks)
                    continue
            if timeout is not None:
                schedule(Occurrence(self._give_up, group), LIMIT, timeout)

    def cut(self, group: int) -> None:
        due = self._ledger.due[group]
        self._running -= due == NEVER or due >= self._events.now

    def _varied(self, group: int, ticks: int, now: int) -> int:
        """With noise, and of a first group that is partly done already what is left."""
        law, draws, ledger = self._law, self._draws, self._ledger
        if law.noise:
            drawn = draws.exponential("noise", *ledger.origin(group))
            ticks += to_ticks(law.noise * law.c_gen * drawn)
        if law.start == "stagger" and now == 0:
            ticks = round(ticks * (1.0 - draws.uniform("start", group)))
        return ticks

    def _ended_or_cut(self, event: Event) -> None:
        if event._value not in self._dropped:
            self._running -= 1
            self._ended(event)

    def _give_up(self, event: Event) -> None:
        group = event._value
        if group not in self._dropped:
            self._running -= 1
            self._late(group)


class Slots:
    """Responses share an engine; a group ends with its last one."""

    def __init__(
        self, law: Law, events: Events, ledger: Ledger, ended: Ended, late: Told, freed: Callable[[], None]
    ) -> None:
        self._law, self._events, self._ledger = law, events, ledger
        self._ended, self._late, self._freed = ended, late, freed
        self._engine = Engine(law)
        self._timeout = None if law.timeout is None else to_ticks(law.timeout)
        self._asked = 0

    @property
    def free(self) -> int | None:
        return self._engine.free

    def begin(self, groups: range, sizes: Iterable[Any]) -> None:
        for group, lengths in zip(groups, sizes, strict=True):
            self._engine.start(group, _all(lengths), self._events.now)
            if self._timeout is not None:
                self._events.after(self._timeout, LIMIT, self._give_up, group)
        self._look_again()

    def cut(self, group: int) -> None:
        if self._ledger.due[group] == NEVER:
            self._engine.cut(group, self._events.now)
            self._look_again()

    def _look_again(self) -> None:
        """Be woken at the next end; what was asked for before does not hold any more."""
        self._asked += 1
        end = self._engine.next_end()
        if end is not None:
            self._events.after(end - self._events.now, COMPLETION, self._wake, self._asked)

    def _wake(self, event: Event) -> None:
        if event._value == self._asked:
            for group in self._engine.finished(self._events.now):
                self._ledger.due[group] = self._events.now
                self._ended(Occurrence(self._ended, group))
            if self._engine.free:
                self._freed()
            self._look_again()

    def _give_up(self, event: Event) -> None:
        group = event._value
        if group not in self._ledger.dropped and self._ledger.due[group] == NEVER:
            self.cut(group)
            self._late(group)


def _all(lengths: Any) -> Sequence[int]:
    if not isinstance(lengths, Sequence):
        raise TypeError("generation slots for responses need all lengths of a group")
    return lengths
