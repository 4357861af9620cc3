"""Every run below a directory, every sweep planned there, and how long they will take. No torch."""

import os
import platform
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from delaysim.errors import UserError
from delaysim.files import locked, read_json
from delaysim.run.sweepfile import SweepFile, read_sweeps

SIGN_OF_LIFE_S = 60.0
"""A run of another machine that wrote so recently runs, whatever the lock says: not every file system shares locks."""
WAITING = "waiting"
"""A cell that a sweep plans and nothing has started."""


@dataclass(frozen=True)
class Seen:
    """One run as its status.json has it."""

    path: Path
    status: dict[str, Any]
    state: str
    written: float
    """When status.json was [seconds since 1970]."""

    @property
    def progress(self) -> float:
        """The share of its updates that is done; 1 where it ended early."""
        ended = self.state in ("done", "collapsed", "failed")
        return 1.0 if ended else float(self.status.get("update", 0) / self.status["updates"])

    @property
    def pace(self) -> float:
        """The share of its updates that it does a second, 0 where it does not run."""
        left = self.status.get("left_s") if self.state == "running" else None
        return (1 - self.progress) / left if left else 0.0

    @property
    def error(self) -> str | None:
        """What went wrong with it, where something did."""
        return self.status.get("error") if self.state in ("failed", "collapsed") else None


@dataclass(frozen=True)
class SweepSeen:
    """A sweep's plan against what there is of it."""

    file: SweepFile
    counts: Counter[str]
    left_s: float | None
    """At its pace so far [wall seconds]; None: not known, or not under way."""
    alive: bool


@dataclass(frozen=True)
class Overview:
    """What a directory holds."""

    runs: dict[Path, Seen]
    files: list[SweepFile]

    @cached_property
    def sweeps(self) -> list[SweepSeen]:
        """The planned sweeps, by name."""
        return [self._sweep(file) for file in self.files]

    @property
    def active(self) -> bool:
        """Whether a run or a sweep is under way."""
        return any(run.state == "running" for run in self.runs.values()) or any(sweep.alive for sweep in self.sweeps)

    def _sweep(self, file: SweepFile) -> SweepSeen:
        states = {path: self.runs[path].state if path in self.runs else WAITING for path in file.runs}
        alive = file.alive
        return SweepSeen(file, Counter(states.values()), self._left(file) if alive else None, alive)

    def _left(self, file: SweepFile) -> float | None:
        """Work to do over the work done a second: by what runs, or since the start where that was faster."""
        known = {path: self.runs[path] for path in file.runs if path in self.runs}
        to_do = sum(work * (1 - known[path].progress if path in known else 1) for path, work in file.runs.items())
        recent = sum(file.runs[path] * run.progress for path, run in known.items() if run.written >= file.started)
        pace = max(
            recent / max(1.0, time.time() - file.started),
            sum(file.runs[path] * run.pace for path, run in known.items()),
        )
        return to_do / pace if pace else None


def overview(root: Path) -> Overview:
    """Read a runs directory, a suite's or a run's. Raises UserError where it is none."""
    if not root.is_dir():
        raise UserError(f"{root} is not a directory: give the folder that holds your runs, e.g. delaysim status runs/")
    found = {path: _seen(path) for path in _runs(root)}
    plans = [file for file in read_sweeps(root) if any(root in run.parents for run in file.runs)]
    return Overview(found, plans)


def _runs(root: Path) -> Iterator[Path]:
    """Directories with a status.json; what lies within one is not looked at."""
    for folder, below, files in os.walk(root):
        if "status.json" in files:
            yield Path(folder)
            below.clear()
        below.sort()


def _seen(path: Path) -> Seen:
    status = read_json(path / "status.json")
    state = str(status.get("state", "starting"))
    written = (path / "status.json").stat().st_mtime
    killed = state == "running" and not _runs_on(path, str(status.get("host")), time.time() - written)
    return Seen(path, status, "killed" if killed else state, written)


def _runs_on(path: Path, host: str, age_s: float) -> bool:
    with locked(path / "lock", wait=False) as free:
        if not free:
            return True
    return host != platform.node() and age_s < SIGN_OF_LIFE_S
