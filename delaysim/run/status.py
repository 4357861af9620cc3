"""status.json: what a run is doing, for `delaysim status` and for the next start. No torch."""

import os
import platform
import time
from contextlib import suppress
from typing import Any

from delaysim.run.records import RunDir

WRITE_EVERY_S = 2.0


class StatusFile:
    """Keeps status.json current, at most every two seconds while a run is under way."""

    def __init__(self, run: RunDir, updates: int) -> None:
        self._run = run
        self._value: dict[str, Any] = {
            "update": 0,
            **run.status(),
            "updates": updates,
            "pid": os.getpid(),
            "host": platform.node(),
        }
        self._written = 0.0

    def set(self, **values: Any) -> None:
        """Change fields and write them now."""
        self._value |= values
        self._written = time.monotonic()
        self._run.write("status.json", self._value)

    def tick(self, **values: Any) -> None:
        """Change fields; write them when the last write is two seconds old."""
        self._value |= values
        if time.monotonic() - self._written >= WRITE_EVERY_S:
            self.set()

    def close(self, state: str, error: str | None) -> None:
        """The last word of this leg; a full disk cannot take it and must not hide how the run ended."""
        with suppress(OSError):
            self.set(state=state, error=error)
