"""What happened to every group, in ticks: the one record that traces and training runs share."""

from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

NEVER = -1
"""Stands in a column for an event that did not happen before the run ended."""

IntArray = NDArray[np.int64]


class Ledger:
    """Columns over groups, indexed by group id, and over updates."""

    def __init__(self) -> None:
        self.version = array("q")
        """Per group: version of the generating weights."""
        self.launch = array("q")
        """Per group: tick of its launch."""
        self.due = array("q")
        """Per group: tick at which its generation ends, reached in this run or not; NEVER for a lost group."""
        self.update = array("q")
        """Per group: consuming update."""
        self.poll = array("q")
        """Per update: tick at which its mini-batch was taken."""
        self.publish = array("q")
        """Per update: tick at which its weights were published."""

    def __len__(self) -> int:
        """Groups launched."""
        return len(self.version)

    def add(self, count: int, version: int, now: int) -> None:
        """Add `count` groups launched at tick `now` with the weights of `version`."""
        self.version.extend([version] * count)
        self.launch.extend([now] * count)
        self.due.extend([NEVER] * count)
        self.update.extend([NEVER] * count)

    def consume(self, groups: Sequence[int], now: int) -> tuple[int, ...]:
        """Groups taken into the next mini-batch at tick `now`; returns their versions."""
        update, column, version = len(self.poll), self.update, self.version
        self.poll.append(now)
        for group in groups:
            column[group] = update
        return tuple([version[group] for group in groups])

    def columns(self) -> dict[str, IntArray]:
        """Arrays over groups once the run is over; -1 stands for what did not happen.

        version; launch, done, consumed [ticks]; ready_version, the version published when the group completed;
        update, which consumed it.
        """
        version, launch, due, update, poll, publish = (
            np.array(column, np.int64)
            for column in (self.version, self.launch, self.due, self.update, self.poll, self.publish)
        )
        completed = (due != NEVER) & (due < publish[-1])  # the run ends before completions at its last tick
        trained = update != NEVER
        return {
            "version": version,
            "launch": launch,
            "done": np.where(completed, due, NEVER),
            "ready_version": np.where(completed, np.searchsorted(publish, due, side="right"), NEVER),
            "update": update,
            "consumed": np.where(trained, poll[update], NEVER),
        }
