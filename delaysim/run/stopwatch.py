"""Where a run's wall time goes."""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

PARTS = ("generate", "rescore", "reward", "train", "publish", "evaluate", "checkpoint")


class Stopwatch:
    """Seconds by part since the last lap; what no part claims is `rest`."""

    def __init__(self) -> None:
        self._spent: dict[str, float] = defaultdict(float)
        self._lap = time.perf_counter()

    def now(self) -> float:
        """Seconds on this machine's monotonic clock."""
        return time.perf_counter()

    @contextmanager
    def time(self, part: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self._spent[part] += time.perf_counter() - start

    def lap(self) -> dict[str, float]:
        """Columns wall_s, one per part, and rest_s [seconds] since the previous lap."""
        now = time.perf_counter()
        wall, self._lap = now - self._lap, now
        columns = {f"{part}_s": self._spent[part] for part in PARTS}
        self._spent.clear()
        return {"wall_s": wall, **columns, "rest_s": wall - sum(columns.values())}
