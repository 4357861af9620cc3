"""The files of a log: paths, directories and patterns of names."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from glob import glob, has_magic
from pathlib import Path
from types import ModuleType

from delaysim.errors import UserError


def files(places: Sequence[str], form: ModuleType) -> list[Path]:
    """Every file that is meant, each once. Raises UserError where a place has none."""
    found = [path for place in places for path in _of(place, form)]
    return list(dict.fromkeys(found))


def _of(place: str, form: ModuleType) -> list[Path]:
    path = Path(place)
    if path.is_dir():
        return _in(path, form)
    if path.exists():
        if not path.is_file():
            raise UserError(f"{place} is neither a file nor a directory")
        return [path]
    matched = sorted(glob(place, recursive=True)) if has_magic(place) else []
    if not matched:
        raise UserError(f"{place}: no such file or directory")
    return [file for name in matched for file in _of(name, form)]


def _in(folder: Path, form: ModuleType) -> list[Path]:
    chosen = form.choose(folder) if hasattr(form, "choose") else list(_fitting(folder, form.PATTERNS))
    if not chosen:
        raise UserError(f"{folder} has no {' or '.join(form.PATTERNS)}")
    return chosen


def _fitting(folder: Path, patterns: Sequence[str]) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and any(fnmatchcase(path.name, pattern) for pattern in patterns):
            yield path
