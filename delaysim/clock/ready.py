"""The buffer of finished groups, and which of them the learner takes first."""

from collections import OrderedDict, deque
from collections.abc import Callable, Collection
from heapq import heappop, heappush
from itertools import count, islice
from typing import Any

from delaysim.clock.draws import Draws
from delaysim.clock.ledger import Ledger

Key = Callable[[int], Any]

ORDERS: dict[str, Callable[[Ledger, dict[int, float]], Key] | None] = {
    "completion": None,
    "lifo": None,
    "random": None,
    "submit": lambda ledger, sizes: lambda group: group,
    "in_order": lambda ledger, sizes: lambda group: group,
    "version": lambda ledger, sizes: lambda group: ledger.version[group],
    "version_in_order": lambda ledger, sizes: lambda group: ledger.version[group],
    "freshest": lambda ledger, sizes: lambda group: -ledger.version[group],
    "shortest": lambda ledger, sizes: lambda group: sizes[group],
}
"""What is taken first has the smallest key; equal keys go by completion. The two in_order ones wait for what leads."""
STRICT = ("in_order", "version_in_order")
"""Orders in which the learner waits for unfinished groups that come first."""


class Ready:
    """Finished groups in the order of their completion, and of the policy.

    Where all are taken in the order of their completion they stand in line; else each is found by its id.
    """

    def __init__(self, order: str, drops: bool, ledger: Ledger, sizes: dict[int, float], draws: Draws) -> None:
        make = ORDERS[order]
        self._key = None if make is None else make(ledger, sizes)
        self._order, self._draws, self._ledger = order, draws, ledger
        self._line: deque[int] = deque()
        self._found: OrderedDict[int, None] = OrderedDict()
        in_line = order == "completion" and not drops
        self.groups: Collection[int] = self._line if in_line else self._found
        """Finished groups, in the order of their completion."""
        self.add: Callable[[int], None] = self._line.append if in_line else self._add
        """A group is finished."""
        self._heap: list[tuple[Any, int, int]] = []
        self._count = count()

    def oldest(self) -> int:
        """The group that was finished first."""
        return next(iter(self.groups))

    def discard(self, group: int) -> None:
        """Take a group out, where it is in."""
        self._found.pop(group, None)

    def older_than(self, version: int) -> list[int]:
        """Groups of weights before `version`, in the order of their completion."""
        versions = self._ledger.version
        return [group for group in self.groups if versions[group] < version]

    def take(self, count: int, update: int) -> list[int]:
        """Take out the first `count` groups by the policy; there must be as many. `update` keys the random order."""
        if self.groups is self._line:
            return [self._line.popleft() for _ in range(count)]
        for group in (first := self._first(count, update)):
            del self._found[group]
        return first

    def leads(self, count: int, running: int | None) -> bool:
        """Whether no unfinished group, the lowest id being `running`, comes before the `count` first finished ones."""
        if running is None:
            return True
        assert self._key is not None
        entries = self._pop(count)
        for entry in entries:
            heappush(self._heap, entry)
        return bool(self._key(running) >= entries[-1][0])

    def _add(self, group: int) -> None:
        self._found[group] = None
        if self._key is not None:
            heappush(self._heap, (self._key(group), next(self._count), group))

    def _first(self, count: int, update: int) -> list[int]:
        if self._key is not None:
            return [group for _, _, group in self._pop(count)]
        if self._order == "random":
            return self._draws.pick("order", update, tuple(self.groups), count)
        return list(islice(reversed(self._found) if self._order == "lifo" else self._found, count))

    def _pop(self, count: int) -> list[tuple[Any, int, int]]:
        """The first entries of the heap whose groups are still in."""
        entries: list[tuple[Any, int, int]] = []
        while len(entries) < count:
            if (entry := heappop(self._heap))[2] in self.groups:
                entries.append(entry)
        return entries
