"""The suite `measured`: a real asynchronous loop of two processes, its delays recorded as they come.

The sampler generates chunk after chunk, each with the newest weights published when it begins; the learner trains on
the B groups that were finished first, or waits. Admission is the clock's: (eta + 1 + version) * B groups are asked for.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from delaysim.clock import TICKS, Launch, Law, Train
from delaysim.clock.ledger import Ledger
from delaysim.policy.remote import Question, Reply
from delaysim.run.rollouts import Asked, Launcher


class Measured:
    """One run's real time, in ticks of a millionth of a second since it was made."""

    def __init__(self, law: Law, launcher: Launcher) -> None:
        self.ledger = Ledger()
        self._law, self._launcher = law, launcher
        self._start = time.perf_counter()
        self._out: deque[Asked] = deque()
        self._ready: deque[int] = deque()
        self._asked = 0
        self._version = 0

    @property
    def now(self) -> int:
        """Ticks so far."""
        return self._ticks(time.perf_counter())

    def run(self, train: Callable[[Train], object]) -> None:
        """Train every update; `train` publishes."""
        idle_since = self.now
        while self._version < self._law.n_updates:
            self._admit()
            self._collect()
            if len(self._ready) >= self._law.groups_per_update:
                self._update(train, self.now - idle_since)
                idle_since = self.now

    def _admit(self) -> None:
        """Ask for what may be asked for; nothing beyond the last update, since groups finish in their order."""
        size = self._law.groups_per_update
        limit = min((self._law.look_ahead or 0) + 1 + self._version, self._law.n_updates) * size
        self._out.extend(self._launcher.ask(Launch.fresh(self._version, range(self._asked, limit))))
        self._asked = limit

    def _collect(self) -> None:
        """Take in what is finished, and wait for what the next mini-batch lacks."""
        while self._out and (len(self._ready) < self._law.groups_per_update or _question(self._out[0]).answered):
            asked = self._out.popleft()
            self._keep(asked, _question(asked).reply())

    def _keep(self, asked: Asked, reply: Reply) -> None:
        launch = asked.launch._replace(version=reply.version)
        self._launcher.keep(replace(asked, launch=launch, answer=lambda: reply.responses))
        self.ledger.add(len(launch.groups), reply.version, self._ticks(reply.start))
        for group in launch.groups:
            self.ledger.due[group] = self._ticks(reply.end)
            self._ready.append(group)

    def _update(self, train: Callable[[Train], object], wait: int) -> None:
        groups = [self._ready.popleft() for _ in range(self._law.groups_per_update)]
        versions = self.ledger.consume(groups, self.now)
        train(Train(self._version, tuple(groups), versions, self.now, wait))
        self.ledger.publish.append(self.now)
        self._version += 1

    def _ticks(self, seconds: float) -> int:
        return int((seconds - self._start) * TICKS)


def _question(asked: Asked) -> Question:
    assert isinstance(asked.answer, Question), "the suite measured asks a sampler elsewhere"
    return asked.answer
