"""What happened to every group, in ticks: the one record that traces and training runs share."""

from array import array
from collections.abc import Sequence
from functools import cached_property
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

NEVER = -1
"""Stands in a column for an event that did not happen before the run ended."""
FATES = ("trained", "never", "queue", "age", "aborted", "timeout", "filtered")
"""How a group can end: trained, still there, or dropped and by which rule. Columns hold an index into this."""
TRAINED, STILL_THERE, QUEUE, AGE, ABORTED, TIMEOUT, FILTERED = range(len(FATES))

IntArray = NDArray[np.int64]
_NEVER = array("q", (NEVER,))


class Ledger:
    """Columns over groups, indexed by group id, and over updates; some only where a run is not a plain one."""

    def __init__(self, reward_lag: int = 0) -> None:
        self.reward_lag = reward_lag
        """Ticks from the end of a group's generation until it is ready."""
        self.prompt = array("q")
        """Per group: which fresh prompt it answers; empty while that is its own id."""
        self.attempt = array("q")
        """Per group: how often its prompt was launched before; empty like `prompt`."""
        self.submit = array("q")
        """Per group: tick at which its prompt could have been launched; empty where that is its launch."""
        self.version = array("q")
        """Per group: version of the generating weights."""
        self.launch = array("q")
        """Per group: tick of its launch."""
        self.due = array("q")
        """Per group: tick at which its generation ends, reached in this run or not; NEVER for a lost group."""
        self.update = array("q")
        """Per group: consuming update."""
        self.drops: IntArray = np.empty((0, 3), np.int64)
        """Rows (group, fate, tick) of those that were dropped, where an engine knows them all at once."""
        self.poll = array("q")
        """Per update: tick at which its mini-batch was taken."""
        self.publish = array("q")
        """Per update: tick at which its weights were published."""
        self.replays: list[tuple[int, int]] = []
        """(update, group) of every group that was consumed again."""

    def __len__(self) -> int:
        """Groups launched."""
        return len(self.version)

    @cached_property
    def dropped(self) -> dict[int, tuple[int, int]]:
        """By group: fate and tick of those that were dropped."""
        return {group: (fate, tick) for group, fate, tick in self.drops.tolist()}

    def add(self, count: int, version: int, now: int) -> None:
        """Add `count` groups launched at tick `now` with the weights of `version`."""
        never = _NEVER * count
        self.version.extend(array("q", (version,)) * count)
        self.launch.extend(array("q", (now,)) * count)
        self.due.extend(never)
        self.update.extend(never)

    def say(self, prompts: Sequence[int], attempts: Sequence[int], submitted: Sequence[int]) -> None:
        """Where the groups added last come from."""
        first = len(self) - len(prompts)
        if self.prompt or prompts != range(first, len(self)):
            self.prompt.extend([*range(len(self.prompt), first), *prompts])
            self.attempt.extend([*[0] * (first - len(self.attempt)), *attempts])
        if self.submit or submitted[0] != self.launch[-1] or submitted[-1] != self.launch[-1]:
            self.submit.extend([*self.launch[len(self.submit) : first], *submitted])

    def origin(self, group: int) -> tuple[int, int]:
        """Prompt and attempt of a group."""
        return (self.prompt[group], self.attempt[group]) if self.prompt else (group, 0)

    def consume(self, groups: Sequence[int], now: int) -> tuple[int, ...]:
        """Groups taken into the next mini-batch at tick `now`; returns their versions."""
        update, column, version = len(self.poll), self.update, self.version
        self.poll.append(now)
        for group in groups:
            column[group] = update
        return itemgetter(*groups)(version) if len(groups) > 1 else tuple([version[group] for group in groups])

    def gone(self, group: int) -> bool:
        """Whether a group is trained or dropped."""
        return self.update[group] != NEVER or group in self.dropped

    def columns(self) -> dict[str, IntArray]:
        """Arrays over groups once the run is over; -1 stands for what did not happen.

        prompt, attempt, version, fate; submit, launch, done, ready, consumed, dropped [ticks]; ready_version, the
        version published when the group was ready; update, which consumed it.
        """
        names = ("version", "launch", "due", "update", "poll", "publish")
        version, launch, due, update, poll, publish = (np.array(getattr(self, name), np.int64) for name in names)
        fate, drop = self._ends(update)
        cut = (fate == ABORTED) | (fate == TIMEOUT)
        done = _reached(due, drop, cut, publish[-1])
        ready = _reached(np.where(due == NEVER, NEVER, due + self.reward_lag), drop, cut, publish[-1])
        return {
            "prompt": np.array(self.prompt, np.int64) if self.prompt else np.arange(len(self)),
            "attempt": np.array(self.attempt, np.int64) if self.prompt else np.zeros(len(self), np.int64),
            "version": version,
            "fate": fate,
            "submit": np.array(self.submit, np.int64) if self.submit else launch,
            "launch": launch,
            "done": done,
            "ready": ready,
            "ready_version": np.where(ready == NEVER, NEVER, np.searchsorted(publish, ready, side="right")),
            "update": update,
            "consumed": np.where(update != NEVER, poll[update], NEVER),
            "dropped": drop,
        }

    def _ends(self, update: IntArray) -> tuple[IntArray, IntArray]:
        """Fate of every group, and the tick at which it was dropped."""
        fate, drop = np.where(update != NEVER, TRAINED, STILL_THERE), np.full(len(self), NEVER)
        groups, fates, ticks = (self.drops if len(self.drops) else self._dropped_rows()).T
        fate[groups], drop[groups] = fates, ticks
        return fate, drop

    def _dropped_rows(self) -> IntArray:
        return np.array([(group, *end) for group, end in self.dropped.items()], np.int64).reshape(-1, 3)


def _reached(ticks: IntArray, drop: IntArray, cut: NDArray[np.bool_], end: int) -> IntArray:
    """Ticks of what happened: the run ends before what is due at its last tick, and so does a cut."""
    return np.where((ticks != NEVER) & (ticks < end) & ~(cut & (drop <= ticks)), ticks, NEVER)
