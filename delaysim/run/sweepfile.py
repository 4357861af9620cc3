"""What a sweep means to run, written once before it starts, for `delaysim status` under any launcher. No torch."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from delaysim.files import digest, locked, read_json, write_json
from delaysim.run.cells import Cell
from delaysim.run.provenance import command

FOLDER = "sweeps"
"""Beside the suites of a runs directory."""


@dataclass(frozen=True)
class SweepFile:
    """The plan of one sweep."""

    path: Path
    name: str
    command: str
    runs: dict[Path, int]
    """Run directories, and the responses each trains on: N*B*G."""

    @property
    def started(self) -> float:
        """When the command was last given [seconds since 1970]."""
        return self.path.stat().st_mtime

    @property
    def alive(self) -> bool:
        """Whether the command line that launches it still runs."""
        with locked(self.path.with_suffix(".lock"), wait=False) as got:
            return not got


@contextmanager
def announced(name: str, cells: Sequence[Cell]) -> Iterator[None]:
    """Write the plan of a sweep and hold its lock; the same cells are the same sweep."""
    root = Path(cells[0].cfg.runs_dir)
    runs = {os.path.relpath(c.path, root): c.cfg.updates * c.cfg.B * c.cfg.G for c in cells}
    path = root / FOLDER / f"{name}-{digest(sorted(runs), 8)}.json"
    with locked(path.with_suffix(".lock"), wait=False):
        write_json(path, {"name": name, "command": command(), "runs": runs})
        yield


def read_sweeps(root: Path) -> list[SweepFile]:
    """The plans of a runs directory, or of the one above where `root` is a suite's."""
    found = [path for folder in (root, root.parent) for path in sorted((folder / FOLDER).glob("*.json"))]
    return [_read(path) for path in found]


def _read(path: Path) -> SweepFile:
    plan, root = read_json(path), path.parents[1]
    return SweepFile(path, plan["name"], plan["command"], {root / run: work for run, work in plan["runs"].items()})
