"""The event loop, as a coroutine that yields what has to be computed and receives response lengths.

Events at one tick fire in the order publish, completion (end of generation, scores, time limits), admission, poll,
then by group id; SimPy's heap orders by (time, priority, insertion), and groups are inserted by id.
"""

from collections import deque
from collections.abc import Generator
from typing import Any

from simpy import Event
from simpy.core import EmptySchedule

from delaysim.clock.draws import Draws
from delaysim.clock.events import ADMISSION, POLL, PUBLISH, SCORING, Events
from delaysim.clock.gate import Gate
from delaysim.clock.generation import Ended, Generation, Slots, Timers
from delaysim.clock.law import Law, to_ticks
from delaysim.clock.ledger import ABORTED, AGE, FILTERED, NEVER, QUEUE, TIMEOUT, Ledger
from delaysim.clock.ready import STRICT, Ready
from delaysim.clock.steps import Answer, Launch, Lengths, Step, Sync, Train
from delaysim.clock.weights import Weights

_OVER = Step(None, None)
STARVED = 10_000
"""So many groups go while the learner waits, and it gives up."""


class Stalled(RuntimeError):
    """The learner waits and nothing can end its wait; the message says what is missing."""


class Clock:
    """One run's simulated time. Drive it with `steps()`; read `ledger`, `version` and `now` at any point.

    `seed` keys what the law leaves to chance: noise, arrivals, a random order, groups that are replayed.
    """

    def __init__(self, law: Law, seed: int = 0) -> None:
        self.law = law
        self.ledger = Ledger(to_ticks(law.reward_lag))
        self.version = 0
        """Updates published so far."""
        self._events, self._draws = Events(), Draws(seed)
        self._gate = Gate(law, self._events, self._draws, self._admit)
        self._sizes: dict[int, Any] = {}
        self._ready = Ready(law.order, law.drops, self.ledger, self._sizes, self._draws)
        slots_matter = law.workers is not None or law.slots is not None
        judged = law.zero_variance != "kept" or law.queue_drop is not None
        ended = self._ended if slots_matter or law.reward_lag else self._scored if judged else self._finish
        self._generation = self._generation_of(law, ended)
        self._weights = Weights(law, self._events, self._synced)
        self._batch: Train | None = None
        self._batch_trained = False
        self._idle_since = 0
        self._in_vain = 0
        self._first_young = self._first_running = 0
        self._flat: set[int] = set()
        self._consumed: deque[int] = deque()
        self._gone: list[int] = []
        self._step: Step | None = None
        self._queue = law.queue_limit
        self._strict = law.order in STRICT
        self._finished = self._ready.groups
        self._needed = law.groups_per_update

    @property
    def now(self) -> int:
        """Current tick."""
        return self._events.now

    def steps(self) -> Generator[Step, Lengths | Answer | None, None]:
        """Yield each step in causal order; send the answer back after a step that has a launch.

        The first send is None. Ends after the step that trains update N-1. Raises `Stalled`.
        """
        self._gate.open()
        while (step := self._advance()) is not _OVER:
            answer = yield step
            if step.launch is not None:
                self._begin(step.launch, answer)
            if self.version == self.law.n_updates:
                return

    def _advance(self) -> Step:
        """Let events happen until one of them asks for a step."""
        fire = self._events.step
        try:
            while self._step is None:
                fire()
        except EmptySchedule:
            raise Stalled(self._what_is_missing()) from None
        step, self._step = self._step, None
        if self._gone and step is not _OVER:
            step = step._replace(dropped=tuple(self._gone))
            self._gone.clear()
        return step

    def _admit(self) -> None:
        first = len(self.ledger)
        count = self._gate.free(first, self._generation.free, self._needed)
        if count > 0:
            launch = self._launch(range(first, first + count))
            if launch.groups:
                self._step = Step(launch, self._decide_beside_launch())
            else:
                self._begin(launch, ())
        self._request_poll()

    def _launch(self, groups: range) -> Launch:
        """Write down groups that go now; the launch has those of them that are worth generating."""
        version, consumable = self._weights.version, self.law.consumable
        prompts, attempts, since = self._gate.take(len(groups))
        self.ledger.add(len(groups), version, self._events.now)
        if since:
            self.ledger.say(prompts, attempts, since)
        if consumable is None or groups.stop <= consumable:
            return Launch(version, groups, prompts, attempts)
        size = max(0, consumable - groups.start)
        return Launch(version, groups[:size], prompts[:size], attempts[:size])

    def _decide_beside_launch(self) -> Train | None:
        """The next update, where it neither needs the groups launched now nor changes a later launch's weights."""
        if not (self.law.overlaps and self._learner_can_start()):
            return None
        self._decide()
        self._batch_trained = True
        return self._batch

    def _begin(self, launch: Launch, answer: Lengths | Answer | None) -> None:
        sizes, flat = answer if isinstance(answer, Answer) else (answer, ())
        if sizes is None or len(sizes) != len(launch.groups):
            raise ValueError(f"the launch of {launch.groups} must be answered with as many lengths")
        if self.law.zero_variance == "replaced":
            self._flat.update(flat)
        groups = launch.groups
        if self.law.consumable is not None:  # the law proves the rest never consumed
            rest = len(self.ledger) - groups.stop
            groups, sizes = range(groups.start, groups.stop + rest), [*sizes, *[0] * rest]
        if self.law.order == "shortest":
            self._sizes.update(zip(groups, sizes, strict=True))
        self._generation.begin(groups, sizes)

    # From generation to the learner.

    def _generation_of(self, law: Law, ended: Ended) -> Generation:
        def late(group: int) -> None:
            self._drop(group, TIMEOUT)

        if law.slots is None:
            return Timers(law, self._events, self.ledger, self._draws, ended, late)
        return Slots(law, self._events, self.ledger, ended, late, lambda: self._events.once(ADMISSION, self._admit))

    def _ended(self, event: Event) -> None:
        self._events.once(ADMISSION, self._admit)
        if self.ledger.reward_lag:
            self._events.after(self.ledger.reward_lag, SCORING, self._scored, event._value)
        else:
            self._scored(event)

    def _scored(self, event: Event) -> None:
        group = event._value
        if group in self.ledger.dropped:
            return
        if group in self._flat:
            self._drop(group, FILTERED)
            return
        self._finish(event)
        if self._queue is not None and len(self._finished) > self._queue:
            self._drop(self._ready.oldest(), QUEUE)

    def _finish(self, event: Event) -> None:
        self._ready.add(event._value)
        if self._batch is None and len(self._finished) >= self._needed:
            self._events.once(POLL, self._poll)

    def _drop(self, group: int, fate: int) -> None:
        self._ready.discard(group)
        self.ledger.dropped[group] = (fate, self.now)
        self._gate.given_back += 1
        self._gone.append(group)
        if self.law.requeue and fate != FILTERED:
            prompt, attempt = self.ledger.origin(group)
            self._gate.again(prompt, attempt + 1)
        self._events.once(ADMISSION, self._admit)
        self._in_vain += self._batch is None
        if self._in_vain > STARVED:
            raise Stalled(f"update {self.version} waits, and group after group is dropped: {self._limits()}")

    def _limits(self) -> str:
        names = ("queue_drop", "age_max", "abort_age", "timeout")
        low = " or ".join(f"clock.{name}" for name in names if getattr(self.law, name) is not None)
        return f"{low} is too low" if low else "all have equal rewards (clock.zero_variance=replaced)"

    def _drop_old(self, limit: int) -> None:
        """Drop every group of weights before `limit`; versions rise with ids."""
        ledger = self.ledger
        while self._first_young < len(ledger) and ledger.version[self._first_young] < limit:
            group, self._first_young = self._first_young, self._first_young + 1
            if not ledger.gone(group):
                if group not in self._finished:
                    self._generation.cut(group)
                self._drop(group, ABORTED)

    # The learner: it takes B groups as soon as there are as many, or waits; it never trains a short batch.

    def _learner_can_start(self) -> bool:
        needed = self._needed
        if self._batch is not None or len(self._finished) < needed:
            return False
        return not self._strict or self._ready.leads(needed, self._running())

    def _running(self) -> int | None:
        """The lowest id of a group that is not finished."""
        ledger, group = self.ledger, self._first_running
        while group < len(ledger) and (ledger.gone(group) or group in self._finished):
            group += 1
        self._first_running = group
        return group if group < len(ledger) else None

    def _request_poll(self) -> None:
        if self._batch is None and len(self._finished) >= self._needed:
            self._events.once(POLL, self._poll)

    def _poll(self) -> None:
        if self.law.age_max is not None and self._batch is None:
            for group in self._ready.older_than(self.version - self.law.age_max):
                self._drop(group, AGE)
        if self._learner_can_start():
            self._decide()

    def _decide(self) -> None:
        now, update = self._events.now, self.version
        replayed = self._replayed(update) if self.law.replayed else ()
        groups = tuple(sorted(self._ready.take(self._needed, update)))
        versions = self.ledger.consume(groups, now)
        ticks = self.law.update_ticks(update)
        self._batch = Train(update, groups, versions, now + ticks, now - self._idle_since, replayed)
        self._batch_trained, self._in_vain = False, 0
        self._events.after(ticks, PUBLISH, self._publish)

    def _replayed(self, update: int) -> tuple[int, ...]:
        """Groups of the mini-batch that were consumed before, once there are as many."""
        law, consumed = self.law, self._consumed
        if len(consumed) < law.replayed:
            return ()
        picked = tuple(sorted(self._draws.pick("replay", update, consumed, law.replayed)))
        self.ledger.replays.extend((update, group) for group in picked)
        return picked

    def _publish(self, _event: Event) -> None:
        batch, trained = self._batch, self._batch_trained
        assert batch is not None
        self._batch = None
        self._idle_since = now = self._events.now
        self.ledger.publish.append(now)
        self.version += 1
        self._gate.given_back += len(batch.groups)
        if self.law.replayed:
            self._remember(batch)
        sync = self._weights.publish(self.version)
        if not trained:
            self._step = Step(None, batch, sync)
        elif self.version == self.law.n_updates:
            self._step = _OVER
        if self.law.abort_age is not None:
            self._drop_old(self.version - self.law.abort_age)
        self._events.once(ADMISSION, self._admit)

    def _remember(self, batch: Train) -> None:
        """Keep what the next updates may draw again."""
        self._consumed.extend(batch.groups)
        while self._consumed and self.ledger.update[self._consumed[0]] < self.version - self.law.replay_window:
            self._consumed.popleft()
        enough = len(self._consumed) >= self.law.replayed
        self._needed = self.law.fresh if enough else self.law.groups_per_update

    def _synced(self, sync: Sync) -> None:
        self._step = Step(None, None, sync)

    def _what_is_missing(self) -> str:
        dropped = self.ledger.dropped
        lost = [group for group, due in enumerate(self.ledger.due) if due == NEVER and group not in dropped]
        named = ", ".join(f"{g} (version {self.ledger.version[g]})" for g in lost[:8])
        ready = len(self._finished)
        return (
            f"update {self.version} needs B={self.law.groups_per_update} groups, {ready} are ready and no "
            f"event is left; launched but never completed: {named}{', ...' if len(lost) > 8 else ''}"
        )
