"""Weights made once and cached by content: built under a lock, checked when read, rebuilt if damaged."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from delaysim.files import cache_root, file_digest, locked, read_json, write_json

SEAL = "sha256.json"


def cached(kind: str, key: str, build: Callable[[Path], None]) -> Path:
    """The directory that `build` fills, made at most once for each `key` by any number of processes.

    A directory without its seal, or whose files no longer match it, is built again.
    """
    place = cache_root() / kind / key
    if _intact(place):
        return place
    with locked(cache_root() / kind / f"{key}.lock", wait=True):
        if not _intact(place):
            _build(place, build)
    return place


def _build(place: Path, build: Callable[[Path], None]) -> None:
    for stale in place.parent.glob(f".{place.name}.*"):  # left by a kill; the lock is ours
        shutil.rmtree(stale, ignore_errors=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        build(scratch)
        write_json(scratch / SEAL, {p.name: file_digest(p) for p in sorted(scratch.iterdir())})
        shutil.rmtree(place, ignore_errors=True)
        scratch.rename(place)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _intact(place: Path) -> bool:
    try:
        seal = read_json(place / SEAL)
        return all(file_digest(place / name) == digest for name, digest in seal.items())
    except (OSError, ValueError, AttributeError):
        return False
