"""A run directory: append-only rows, atomic pointers, one writer. docs/records.md is its contract. Imports no torch."""

import json
import os
import shutil
import time
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from delaysim.errors import RunFailed, UserError
from delaysim.files import finite, locked, read_json, write_json

SCHEMA = 2
"""Version of the run directory's layout; readers refuse others."""
ROWS = ("launches", "updates", "groups", "evals")
"""The append-only tables, one JSON object a line."""
FILES = {**{name: f"{name}.jsonl" for name in ROWS}, "ratios": "ratios.bin"}
"""Every append-only file."""
LOOK_EVERY_S = 0.1
"""While another process holds a run, its lock is tried this often; `delaysim status` holds it for an instant."""


class RunDir:
    """One run's directory, held by one process at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._open: dict[str, BinaryIO] = {}
        self._lock: AbstractContextManager[bool] | None = None

    # whole files

    @property
    def exists(self) -> bool:
        return (self.path / "manifest.json").exists()

    def status(self) -> dict[str, Any]:
        """status.json, empty where there is none yet."""
        return self.read("status.json")

    def manifest(self) -> dict[str, Any]:
        """manifest.json; raises UserError when it is of another schema."""
        manifest = _read_or_empty(self.path / "manifest.json")
        if manifest and manifest.get("schema") != SCHEMA:
            raise UserError(
                f"{self.path} has run-directory schema {manifest.get('schema')}, this delaysim writes {SCHEMA}: "
                "use another runs_dir=, or the version that wrote it"
            )
        return manifest

    def read(self, name: str) -> dict[str, Any]:
        """A JSON file of the directory, empty where there is none; raises UserError when it is damaged."""
        return _read_or_empty(self.path / name)

    def write(self, name: str, value: Any) -> None:
        """Replace a JSON file of the directory."""
        write_json(self.path / name, value)

    # one writer

    def acquire(self, wait_s: float = 0.0) -> None:
        """Take the directory's lock for the life of this process.

        `wait_s`: how long to wait for it [wall seconds]. Raises UserError when another run still holds it.
        """
        end = time.monotonic() + wait_s
        while not self._try_lock():
            if time.monotonic() < end:
                time.sleep(LOOK_EVERY_S)
                continue
            raise UserError(f"another process is running {self.path}; wait for it, or watch it: delaysim status runs/")
        for part in self.path.rglob(".*.part"):  # left by a kill; nobody else writes here now
            part.unlink(missing_ok=True)

    def _try_lock(self) -> bool:
        self._lock = locked(self.path / "lock", wait=False)
        return self._lock.__enter__()

    def release(self) -> None:
        """Close every file and give the lock back."""
        for file in self._open.values():
            with suppress(OSError):  # what a full disk refused before, it refuses again
                file.close()
        self._open.clear()
        if self._lock is not None:
            self._lock.__exit__(None, None, None)
            self._lock = None

    def clear(self) -> None:
        """Remove everything but the lock: the run starts over."""
        for path in self.path.iterdir():
            if path.name != "lock":
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    # rows

    def append(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Append rows to a file, in one write."""
        lines = "".join(json.dumps(finite(row), separators=(",", ":")) + "\n" for row in rows)
        file = self._file(name)
        file.write(lines.encode())
        file.flush()

    def append_bytes(self, name: str, data: bytes) -> None:
        """Append a block to a file that is no table, in one write."""
        file = self._file(name)
        file.write(data)
        file.flush()

    def rows(self, name: str) -> list[dict[str, Any]]:
        """All whole rows of a file; a torn last line is left out."""
        return list(read_rows(self.path / f"{name}.jsonl"))

    def sizes(self, sync: bool = True) -> dict[str, int]:
        """Bytes in each append-only file, flushed to disk first."""
        for name in FILES:
            if sync:
                os.fsync(self._file(name).fileno())
        return {name: os.fstat(self._file(name).fileno()).st_size for name in FILES}

    def truncate(self, sizes: Mapping[str, int]) -> None:
        """Cut every append-only file back to a checkpoint's sizes."""
        for name, file in FILES.items():
            if os.fstat(self._file(name).fileno()).st_size < sizes.get(name, 0):
                raise RunFailed(f"{self.path / file} is shorter than its checkpoint says: resume=never starts over")
            self._file(name).truncate(sizes.get(name, 0))

    def _file(self, name: str) -> BinaryIO:
        if name not in self._open:
            self._open[name] = (self.path / FILES[name]).open("ab")
        return self._open[name]


def read_rows(path: Path) -> Iterable[dict[str, Any]]:
    """The rows of a JSON-lines file; a last line without its newline is a torn one."""
    if path.exists():
        with path.open("rb") as file:
            yield from (json.loads(line) for line in file if line.endswith(b"\n"))


def _read_or_empty(path: Path) -> dict[str, Any]:
    try:
        return dict(read_json(path))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise UserError(f"{path} is damaged ({error}): resume=never starts the run over") from None
