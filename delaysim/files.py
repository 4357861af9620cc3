"""Files that survive a kill: atomic replacement, appended lines, locks, content hashes. Imports no torch."""

import fcntl
import hashlib
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO


def digest(value: Any, length: int = 16) -> str:
    """Hash of a JSON-like value."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def file_digest(path: Path) -> str:
    """sha256 of a file, or of every file below a directory with its relative name."""
    if path.is_file():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    parts = [(str(p.relative_to(path)), file_digest(p)) for p in sorted(path.rglob("*")) if p.is_file()]
    return digest(parts, 64)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write in place of `path`: after a kill it is the old one or the whole new one."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_atomic(path: Path, data: bytes) -> None:
    """Replace a file as a whole."""
    with replacing(path) as file:
        file.write(data)


def write_json(path: Path, value: Any) -> None:
    """Replace a JSON file as a whole."""
    write_atomic(path, (json.dumps(finite(value), indent=1) + "\n").encode())


def read_json(path: Path) -> Any:
    """A JSON file's value."""
    return json.loads(path.read_text())


def finite(value: Any) -> Any:
    """The value with non-finite numbers as None: JSON has none."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


@contextmanager
def locked(path: Path, wait: bool) -> Iterator[bool]:
    """Hold an advisory lock that ends with the process; yields whether it was got (always, when waiting)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True


def cache_root() -> Path:
    """Where base weights and pilots are kept: DELAYSIM_CACHE, else delaysim/ in the user's cache directory."""
    own = os.environ.get("DELAYSIM_CACHE")
    return Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "delaysim"
