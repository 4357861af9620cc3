"""Generation slots for responses that share one throughput: every response goes on at the same speed.

All responses at work get equally many tokens, so that one count of tokens since the start, `progress`, tells when each
of them ends: at the progress of its own start plus its length.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush
from math import ceil

from delaysim.clock.law import TICKS, Law


class Engine:
    """The responses in generation and those that wait for a slot, in the order in which they were given."""

    def __init__(self, law: Law) -> None:
        assert law.slots is not None
        self._slots, self._group_size = law.slots, law.group_size
        self._speed, self._alone = law.speed, law.l_ref / law.c_gen if law.c_gen else 0.0
        self._now, self._progress = 0, 0.0
        self._working: list[tuple[float, int, int]] = []
        self._waiting: deque[tuple[int, int]] = deque()
        self._left: dict[int, int] = {}
        self._cut: dict[int, int] = {}
        self._started = 0

    @property
    def working(self) -> int:
        """Responses in a slot."""
        return len(self._working) - sum(self._cut.values())

    @property
    def free(self) -> int:
        """Groups that can be launched now: each finds a slot for one response at least."""
        idle = self._slots - self.working - len(self._waiting)
        return max(0, ceil(idle / self._group_size))

    def start(self, group: int, lengths: Sequence[int], now: int) -> None:
        """Give a group's responses to the engine at tick `now`."""
        self.advance(now)
        self._left[group] = len(lengths)
        self._waiting.extend((group, length) for length in lengths)
        self._fill()

    def cut(self, group: int, now: int) -> None:
        """Take a group's responses out at tick `now`."""
        self.advance(now)
        waiting = sum(1 for owner, _ in self._waiting if owner == group)
        self._waiting = deque(entry for entry in self._waiting if entry[0] != group)
        self._cut[group] = self._left.pop(group) - waiting
        self._fill()

    def next_end(self) -> int | None:
        """Tick at which the next response ends, if nothing else happens."""
        self._forget_cut()
        if not self._working:
            return None
        tokens = self._working[0][0] - self._progress
        return self._now + max(0, ceil(tokens / self._rate() * TICKS))

    def finished(self, now: int) -> list[int]:
        """Groups whose last response ends at tick `now`, by id; freed slots are taken by those that wait."""
        self.advance(now)
        done = []
        self._forget_cut()
        while self._working and self._working[0][0] <= self._progress:
            group = heappop(self._working)[2]
            self._left[group] -= 1
            if not self._left[group]:
                del self._left[group]
                done.append(group)
            self._forget_cut()
        self._fill()
        return sorted(done)

    def advance(self, now: int) -> None:
        """Let the responses at work go on until tick `now`."""
        self._forget_cut()
        if self._working and now > self._now:
            reached = self._progress + self._rate() * (now - self._now) / TICKS
            first = self._working[0][0]
            self._progress = first if abs(reached - first) <= 1e-9 * first else reached
        self._now = now

    def _rate(self) -> float:
        """Tokens per sim unit of each response at work."""
        count = self.working
        return self._together(count) / count if self._speed else self._alone

    def _together(self, count: int) -> float:
        counts = [at_once for at_once, _ in self._speed]
        place = bisect_left(counts, count)
        if place == 0 or place == len(counts):
            edge = self._speed[min(place, len(counts) - 1)]
            return edge[1] * (count / edge[0] if place == 0 else 1.0)
        (low, slow), (high, fast) = self._speed[place - 1], self._speed[place]
        return slow + (fast - slow) * (count - low) / (high - low)

    def _fill(self) -> None:
        while self._waiting and self.working < self._slots:
            group, length = self._waiting.popleft()
            heappush(self._working, (self._progress + length, self._started, group))
            self._started += 1

    def _forget_cut(self) -> None:
        """Take cut responses off the front; elsewhere they are only not counted."""
        while self._working and self._working[0][2] in self._cut:
            group = heappop(self._working)[2]
            self._cut[group] -= 1
            if not self._cut[group]:
                del self._cut[group]
