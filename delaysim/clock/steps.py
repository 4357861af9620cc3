"""What the clock asks of its driver, one step at a time, and what it is told in return."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

Size = float | Sequence[int]
"""Of a group: the law's statistic of its lengths [tokens], or with generation slots for responses all G lengths."""
Lengths = Sequence[Size | None]
"""The answer to a launch: per group its size, None for a group that is lost."""


class Answer(NamedTuple):
    """The answer to a launch of a law that looks at rewards."""

    sizes: Lengths
    flat: Collection[int]
    """Groups of the launch whose rewards are all equal, by id."""


class Launch(NamedTuple):
    """Groups to generate with the sampler's weights of now."""

    version: int
    """Number of updates behind those weights."""
    groups: range
    """Group ids, consecutive."""
    prompts: Sequence[int]
    """Per group, which fresh prompt it answers."""
    attempts: Sequence[int]
    """Per group, how often its prompt was launched before."""

    @classmethod
    def fresh(cls, version: int, groups: range) -> "Launch":
        """Groups that answer the prompts of their own ids, for the first time."""
        return cls(version, groups, groups, [0] * len(groups))


class Train(NamedTuple):
    """One learner update; it maps weights `update` to `update + 1`."""

    update: int
    groups: tuple[int, ...]
    """The groups of the mini-batch that are consumed with it, by id."""
    versions: tuple[int, ...]
    """Generating version of each; the delay is `update - version`."""
    publish: int
    """Tick at which the new weights are published."""
    wait: int
    """Ticks the learner stood idle before this update."""
    replayed: tuple[int, ...] = ()
    """Groups that complete the mini-batch, consumed before, by id."""


class Sync(NamedTuple):
    """Weights on their way to a sampler that has its own."""

    version: int
    """Number of updates behind them."""
    arrived: bool
    """False: set the learner's weights of now aside. True: the sampler uses what was set aside, or the learner's."""


class Step(NamedTuple):
    """One request. With launch and train set both use the same weights: one device launches, then trains."""

    launch: Launch | None
    train: Train | None
    sync: Sync | None = None
    """After the update."""
    dropped: tuple[int, ...] = ()
    """Groups that went since the step before, by id."""
