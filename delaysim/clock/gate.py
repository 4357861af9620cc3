"""How many groups may be launched now: the look-ahead, free slots, and prompts that are there."""

from collections import deque
from collections.abc import Callable
from itertools import takewhile

from simpy import Event

from delaysim.clock.draws import Draws
from delaysim.clock.events import ADMISSION, COMPLETION, Events
from delaysim.clock.law import Law, to_ticks
from delaysim.clock.prompts import Prompts

UNLIMITED = 1 << 62


class Gate:
    """The limits on launches: launched <= (eta + 1) * B + `given_back`, and as many as find a slot and a prompt.

    With replay, B are the fresh groups of a mini-batch; what one mini-batch needs may always be launched.
    """

    def __init__(self, law: Law, events: Events, draws: Draws, admit: Callable[[], None]) -> None:
        """Raises ValueError where nothing limits the launches."""
        if law.look_ahead is law.workers is law.slots is law.arrivals is None:
            raise ValueError("nothing limits launches: the law needs look_ahead, workers, slots or arrivals")
        self._law, self._events, self._draws, self._admit = law, events, draws, admit
        self._prompts = Prompts()
        self._arrived: deque[int] = deque()
        eta = law.look_ahead or 0
        ramp = eta if law.start == "ramp" else 0
        self._ramp = [to_ticks(law.c_gen) * i // (eta + 1) for i in range(1, ramp + 1)]
        self._from_start = (eta - ramp + 1) * law.fresh
        self._closed = law.arrivals is None and not law.requeue
        self.given_back = 0
        """Groups whose place is free again: consumed and published, or dropped."""

    def open(self) -> None:
        """Ask for the first admissions, and for those that time alone brings."""
        self._events.once(ADMISSION, self._admit)
        if self._law.arrivals is not None:
            self._arrive_later(0)
        for tick in self._ramp:
            self._events.after(tick, ADMISSION, lambda _: self._admit())

    def free(self, launched: int, slots: int | None, needed: int) -> int:
        """Groups that may be launched now: `slots` find a place in generation, the next mini-batch takes `needed`."""
        count = UNLIMITED if slots is None else slots
        if self._law.look_ahead is not None:
            count = min(count, max(self._in_system(), needed) + self.given_back - launched)
        if self._law.arrivals is not None:
            count = min(count, self._prompts.waiting + len(self._arrived))
        return count

    def take(self, count: int) -> tuple[range | list[int], list[int], list[int]]:
        """Prompts of the next groups, how often each was launched before, and the tick since which it waits.

        Empty, the ticks, where no prompt ever waits.
        """
        if self._closed:
            return self._prompts.fresh(count), [0] * count, []
        fresh = max(0, count - self._prompts.waiting)
        always = self._law.arrivals is None
        since = [self._events.now] * fresh if always else [self._arrived.popleft() for _ in range(fresh)]
        return self._prompts.take(count, since)

    def again(self, prompt: int, attempt: int) -> None:
        """A prompt is to be launched once more, if it has attempts left."""
        if self._law.attempts is None or attempt < self._law.attempts:
            self._prompts.again(prompt, attempt, self._events.now)

    def _in_system(self) -> int:
        """Groups that the look-ahead leaves room for."""
        if not self._ramp:
            return self._from_start
        reached = sum(1 for _ in takewhile(lambda tick: tick <= self._events.now, self._ramp))
        return self._from_start + reached * self._law.fresh

    def _arrive_later(self, index: int) -> None:
        assert self._law.arrivals is not None
        ticks = to_ticks(self._draws.exponential("arrivals", index) / self._law.arrivals)
        self._events.after(ticks, COMPLETION, self._arrive, index)

    def _arrive(self, event: Event) -> None:
        if self._arrived and self._events.none_left:  # earlier prompts wait, and nothing will ever make room for them
            return
        self._arrived.append(self._events.now)
        self._events.once(ADMISSION, self._admit)
        self._arrive_later(event._value + 1)
