"""What the clock asks of its driver, one step at a time, and what it is told in return."""

from collections.abc import Sequence
from typing import NamedTuple

Lengths = Sequence[int | None]
"""The answer to a launch: per group the length of its longest response [tokens], None for a group that is lost."""


class Launch(NamedTuple):
    """Groups to generate with the weights published now."""

    version: int
    """Number of updates behind those weights."""
    groups: range
    """Group ids, consecutive."""


class Train(NamedTuple):
    """One learner update; it maps weights `update` to `update + 1`."""

    update: int
    groups: tuple[int, ...]
    """The B groups of the mini-batch, by id."""
    versions: tuple[int, ...]
    """Generating version of each; the delay is `update - version`."""
    publish: int
    """Tick at which the new weights are published."""
    wait: int
    """Ticks the learner stood idle before this update."""


class Step(NamedTuple):
    """One request. With both parts set they use the same weights: one device launches, then trains."""

    launch: Launch | None
    train: Train | None
