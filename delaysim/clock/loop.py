"""The SimPy event loop, as a coroutine that yields what has to be computed and receives response lengths.

Events at one tick fire in the order publish, completion, admission, poll, then by group id; SimPy's heap
orders by (time, priority, insertion), and groups are inserted by id.
"""

from collections import deque
from collections.abc import Callable, Generator
from functools import cache
from typing import Any

from simpy import Environment, Event
from simpy.core import EmptySchedule
from simpy.events import EventPriority

from delaysim.clock.law import Law
from delaysim.clock.ledger import NEVER, Ledger
from delaysim.clock.steps import Launch, Lengths, Step, Train

PUBLISH, COMPLETION, ADMISSION, POLL = (EventPriority(rank) for rank in range(4))


_OVER = Step(None, None)


class Stalled(RuntimeError):
    """No event is left and the learner still waits; the message names the groups that are missing."""


class Occurrence(Event):
    """An event that has already succeeded and carries one payload; SimPy's `Timeout` has a fixed priority."""

    _ok = True

    def __init__(self, callback: Callable[[Any], None], payload: Any = None) -> None:
        self.callbacks = [callback]
        self._value = payload


class Clock:
    """One run's simulated time. Drive it with `steps()`; read `ledger`, `version` and `now` at any point."""

    def __init__(self, law: Law) -> None:
        self.law = law
        self.ledger = Ledger()
        self.version = 0
        """Updates published so far."""
        self._env = Environment(0)
        self._ready: deque[int] = deque()
        self._batch: Train | None = None
        self._batch_trained = False
        self._idle_since = 0
        self._due: set[EventPriority] = set()
        self._step: Step | None = None
        self._slots = law.workers
        self._ticks_of = cache(law.duration)
        self._overlaps = law.workers is None and law.shortest_ticks > 0

    @property
    def now(self) -> int:
        """Current tick."""
        return int(self._env.now)

    def steps(self) -> Generator[Step, Lengths | None, None]:
        """Yield each step in causal order; send the lengths back after a step that has a launch.

        The first send is None. Ends after the step that trains update N-1. Raises `Stalled`.
        """
        self._schedule_once(ADMISSION, self._admit)
        while (step := self._advance()) is not _OVER:
            lengths = yield step
            if step.launch is not None:
                self._begin(step.launch, lengths)
            if self.version == self.law.n_updates:
                return

    def _advance(self) -> Step:
        """Fire events until one of them asks for a step."""
        fire = self._env.step
        try:
            while self._step is None:
                fire()
        except EmptySchedule:
            raise Stalled(self._what_is_missing()) from None
        step, self._step = self._step, None
        return step

    def _schedule_once(self, priority: EventPriority, callback: Callable[[Any], None]) -> None:
        if priority not in self._due:
            self._due.add(priority)
            self._env.schedule(Occurrence(callback), priority)

    # Admission: launched - dropped <= (eta + 1 + version) * B, and at most `workers` in generation.

    def _admit(self, _event: Event) -> None:
        self._due.discard(ADMISSION)
        groups = self._admissible()
        if groups:
            self.ledger.add(len(groups), self.version, self.now)
            launch = Launch(self.version, self._worth_generating(groups))
            if launch.groups:
                self._step = Step(launch, self._decide_beside_launch())
            else:
                self._begin(launch, ())
        self._request_poll()

    def _admissible(self) -> range:
        law, launched = self.law, len(self.ledger)
        free = (law.look_ahead + 1 + self.version) * law.groups_per_update - launched
        if self._slots is not None:
            free = min(free, self._slots - self._generating())
        return range(launched, launched + max(0, free))

    def _generating(self) -> int:
        taken = self.version + (self._batch is not None)
        return len(self.ledger) - len(self._ready) - taken * self.law.groups_per_update

    def _worth_generating(self, groups: range) -> range:
        consumable = self.law.consumable
        return groups if consumable is None else range(groups.start, max(groups.start, min(groups.stop, consumable)))

    def _decide_beside_launch(self) -> Train | None:
        """The next update, where it neither needs the groups launched now nor changes a later launch's weights."""
        if not (self._overlaps and self._learner_can_start()):
            return None
        self._decide()
        self._batch_trained = True
        return self._batch

    def _begin(self, launch: Launch, lengths: Lengths | None) -> None:
        if lengths is None or len(lengths) != len(launch.groups):
            raise ValueError(f"the launch of {launch.groups} must be answered with as many lengths")
        prescribed = len(self.ledger) - launch.groups.stop  # groups the law proves never consumed
        self._complete_later(launch.groups.start, [*lengths, *[0] * prescribed])

    def _complete_later(self, first: int, longest: list[int | None]) -> None:
        env, due, ticks_of, complete = self._env, self.ledger.due, self._ticks_of, self._complete
        now, schedule = self.now, env.schedule
        for group, length in enumerate(longest, first):
            if length is not None:
                ticks = ticks_of(length)
                due[group] = now + ticks
                schedule(Occurrence(complete, group), COMPLETION, ticks)

    def _complete(self, event: Event) -> None:
        self._ready.append(event._value)
        if self._batch is None:
            self._request_poll()
        if self._slots is not None:
            self._schedule_once(ADMISSION, self._admit)

    # The learner: it takes the B earliest completions, or waits; it never trains a short batch.

    def _learner_can_start(self) -> bool:
        return self._batch is None and len(self._ready) >= self.law.groups_per_update

    def _request_poll(self) -> None:
        if self._learner_can_start():
            self._schedule_once(POLL, self._poll)

    def _poll(self, _event: Event) -> None:
        self._due.discard(POLL)
        if self._learner_can_start():
            self._decide()

    def _decide(self) -> None:
        now, take = self.now, self._ready.popleft
        groups = sorted([take() for _ in range(self.law.groups_per_update)])
        versions = self.ledger.consume(groups, now)
        ticks = self.law.update_ticks
        self._batch = Train(self.version, tuple(groups), versions, now + ticks, now - self._idle_since)
        self._batch_trained = False
        self._env.schedule(Occurrence(self._publish), PUBLISH, ticks)

    def _publish(self, _event: Event) -> None:
        trained, self._step = self._batch_trained, Step(None, self._batch)
        self._batch = None
        self._idle_since = self.now
        self.ledger.publish.append(self.now)
        self.version += 1
        if trained:
            self._step = None if self.version < self.law.n_updates else _OVER
        self._schedule_once(ADMISSION, self._admit)

    def _what_is_missing(self) -> str:
        lost = [group for group, due in enumerate(self.ledger.due) if due == NEVER]
        named = ", ".join(f"{g} (version {self.ledger.version[g]})" for g in lost[:8])
        return (
            f"update {self.version} needs B={self.law.groups_per_update} groups, {len(self._ready)} are ready and no "
            f"event is left; launched but never completed: {named}{', ...' if len(lost) > 8 else ''}"
        )
