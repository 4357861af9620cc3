"""Consumed groups that a later update may draw again (replay mixing). Imports no torch."""

from collections.abc import Iterable, Mapping
from typing import Any

from delaysim.clock import Law, Train


class Consumed:
    """What the clock may still draw from, by its own rule; nothing without replay."""

    def __init__(self, law: Law, version: int, trained: Iterable[Mapping[str, Any]]) -> None:
        """At this version; `trained`: rows of `groups`."""
        self._window = law.replay_window if law.replayed else 0
        first = version - self._window
        self._update = {r["group"]: r["update"] for r in trained if r["update"] >= first and not r.get("replayed")}

    @property
    def groups(self) -> set[int]:
        """Their ids."""
        return set(self._update)

    def add(self, train: Train) -> list[int]:
        """Take in an update; the groups that no later one can draw."""
        self._update.update(dict.fromkeys(train.groups, train.update))
        gone = [group for group, update in self._update.items() if update <= train.update - self._window]
        for group in gone:
            del self._update[group]
        return gone
