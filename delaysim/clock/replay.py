"""A clock for delays that were recorded elsewhere: the steps and the ledger of `Clock`, without its events."""

from collections.abc import Generator

import numpy as np
from numpy.typing import ArrayLike

from delaysim.clock.law import Law
from delaysim.clock.ledger import Ledger
from delaysim.clock.loop import Stalled
from delaysim.clock.steps import Answer, Launch, Lengths, Step, Train


class Replay:
    """Update n trains on groups of version n - min(n, d), d the recorded delay. Drive it as `Clock`.

    The law gives N, B and C_update; generation is taken to be done in time, when its update begins, so that an update
    costs C_update and the learner never waits. Ids are consecutive in order of launch; groups that are launched
    together go by the update that consumes them.
    """

    def __init__(self, law: Law, delays: ArrayLike, per_group: bool = False) -> None:
        """`delays` [updates], one per update, or per group, a mini-batch after the other; they start over."""
        self.law = law
        self.ledger = Ledger()
        self.version = 0
        """Updates published so far."""
        self.now = 0
        """Current tick."""
        n, b = law.n_updates, law.groups_per_update
        recorded = np.resize(np.asarray(delays, np.int64), n * b if per_group else n)
        delay = recorded.reshape(n, b) if per_group else np.repeat(recorded[:, None], b, axis=1)
        update = np.arange(n)[:, None]
        versions = (update - np.minimum(update, delay)).ravel()
        launched = np.argsort(versions, kind="stable")
        self._groups = np.argsort(launched).reshape(n, b)
        self._update_of = launched // b
        self._first = np.searchsorted(versions[launched], np.arange(n + 1))

    def steps(self) -> Generator[Step, Lengths | Answer | None, None]:
        """Yield each step in causal order; send the answer back after a step that has a launch.

        The first send is None. Ends after the step that trains update N-1. Raises `Stalled` where a group is lost.
        """
        for update in range(self.law.n_updates):
            launch = self._launch(update)
            train = self._train(update)
            together = launch is not None and update not in train.versions
            if launch is not None:
                self._check(launch, (yield Step(launch, train if together else None)))
            self._publish(train)
            if not together:
                yield Step(None, train)

    def _launch(self, version: int) -> Launch | None:
        groups = range(int(self._first[version]), int(self._first[version + 1]))
        if not groups:
            return None
        self.ledger.add(len(groups), version, self.now)
        for group in groups:
            self.ledger.due[group] = int(self._update_of[group]) * self.law.training_ticks
        return Launch.fresh(version, groups)

    def _train(self, update: int) -> Train:
        groups = tuple(sorted(self._groups[update].tolist()))
        versions = self.ledger.consume(groups, self.now)
        return Train(update, groups, versions, self.now + self.law.training_ticks, 0)

    def _check(self, launch: Launch, answer: Lengths | Answer | None) -> None:
        answer = answer.sizes if isinstance(answer, Answer) else answer
        if answer is None or len(answer) != len(launch.groups):
            raise ValueError(f"the launch of {launch.groups} must be answered with as many lengths")
        lost = [group for group, size in zip(launch.groups, answer, strict=True) if size is None]
        if lost:
            raise Stalled(f"the recorded delays need every group, and {lost[0]} (version {launch.version}) is lost")

    def _publish(self, train: Train) -> None:
        self.now = train.publish
        self.ledger.publish.append(self.now)
        self.version += 1


def replay_alone(clock: Replay) -> Replay:
    """Run recorded delays to their end without a model."""
    steps, answer = clock.steps(), None
    try:
        while True:
            launch = steps.send(answer).launch
            answer = None if launch is None else [0] * len(launch.groups)
    except StopIteration:
        return clock
