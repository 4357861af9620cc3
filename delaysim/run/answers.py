"""What the clock is told of the groups a run has generated, from their record. Imports no torch."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from delaysim.clock import Clock, Launch, Law, Lengths
from delaysim.clock.durations import STATS
from delaysim.clock.steps import Answer


class Answers:
    """Sizes by the law's statistic, or all lengths, and which groups' rewards are all equal."""

    def __init__(self, law: Law, launched: Iterable[Mapping[str, Any]] = ()) -> None:
        """`launched`: rows of `launches`."""
        self._law = law
        self.lengths: dict[int, list[int]] = {}
        """Response lengths [tokens] of every group generated so far, by group id."""
        self._flat: set[int] = set()
        for row in launched:
            self.add(row["group"], row["lengths"], row["rewards"])

    def add(self, group: int, lengths: list[int], rewards: Sequence[float]) -> None:
        """A group is generated and scored."""
        self.lengths[group] = lengths
        if min(rewards) == max(rewards):
            self._flat.add(group)

    def has(self, launch: Launch) -> bool:
        """Whether all groups of a launch are there."""
        return all(group in self.lengths for group in launch.groups)

    def to(self, launch: Launch) -> Lengths | Answer:
        """The answer to a launch whose groups are there."""
        every, size = self._law.slots is not None, STATS[self._law.stat]
        lengths = [self.lengths[group] for group in launch.groups]
        sizes: Lengths = lengths if every else [size(each) for each in lengths]
        if self._law.zero_variance == "kept":
            return sizes
        return Answer(sizes, [group for group in launch.groups if group in self._flat])


def dropped_before(clock: Clock, answers: Answers, version: int) -> set[int]:
    """Groups that a run has dropped once it stands at this version, having generated what is recorded.

    Runs the clock, a new one, up to the first launch that is not recorded or the first update that is not trained.
    """
    steps, gone, answer = clock.steps(), set[int](), None
    with suppress(StopIteration):
        while True:
            step = steps.send(answer)
            gone.update(step.dropped)
            trained = step.train is None or step.train.update < version
            if not trained or not (step.launch is None or answers.has(step.launch)):
                break
            answer = None if step.launch is None else answers.to(step.launch)
    return gone
