"""SimPy's event queue with the clock's ranks: what happens first at one tick."""

from collections.abc import Callable
from typing import Any

from simpy import Environment, Event
from simpy.events import EventPriority

PUBLISH, COMPLETION, SCORING, LIMIT, ADMISSION, POLL = (EventPriority(rank) for rank in range(6))


class Occurrence(Event):
    """An event that has already succeeded and carries one payload; SimPy's `Timeout` has a fixed priority."""

    _ok = True

    def __init__(self, callback: Callable[[Any], None], payload: Any = None) -> None:
        self.callbacks = [callback]
        self._value = payload


class Events(Environment):
    """What is going to happen, in ticks."""

    def __init__(self) -> None:
        super().__init__(0)
        self._due: set[EventPriority] = set()

    @property
    def now(self) -> int:
        """Current tick."""
        return self._now  # type: ignore[return-value]

    @property
    def none_left(self) -> bool:
        """Whether nothing more is going to happen."""
        return not self._queue

    def after(self, ticks: int, rank: EventPriority, callback: Callable[[Any], None], payload: Any = None) -> None:
        """Call back with an event that carries the payload, so many ticks from now."""
        self.schedule(Occurrence(callback, payload), rank, ticks)

    def once(self, rank: EventPriority, callback: Callable[[], None]) -> None:
        """Call back at this tick, in the turn of `rank`; once, however often it is asked for."""
        if rank not in self._due:
            self._due.add(rank)
            self.schedule(Occurrence(self._only, (rank, callback)), rank)

    def _only(self, event: Event) -> None:
        rank, callback = event._value
        self._due.discard(rank)
        callback()
