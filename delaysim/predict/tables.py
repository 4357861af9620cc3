"""CSV files of measured costs. Whatever is wrong with one is a line that names the file, the line and the column."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from delaysim.errors import UserError

LARGEST = 64 * 2**20
"""Bytes; a table of costs is far smaller."""


MOST, WIDTH = 20, 60
"""Texts of a file in one message, and characters of each."""


class Row(NamedTuple):
    """A row and where it stands."""

    line: int
    values: Mapping[str, str]


def read_table(path: str | Path) -> list[Row]:
    """The rows of a csv file below its header. Raises UserError."""
    data = _bytes(path)
    try:
        reader = csv.DictReader(data.decode("utf-8-sig").splitlines(keepends=True), strict=True)
        header = reader.fieldnames or []
        if len(set(header)) != len(header) or not all(header):
            raise UserError(f"{path}, line 1: columns need names, each once; they are {names(header)}")
        rows = []
        for row in reader:
            if None in row or None in row.values():
                raise UserError(f"{path}, line {reader.line_num}: not as many cells as the header has columns")
            rows.append(Row(reader.line_num, {key: value.strip() for key, value in row.items()}))
    except (csv.Error, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not a CSV file: {error}") from None
    if not rows:
        raise UserError(f"{path} has no rows below its header")
    return rows


def _bytes(path: str | Path) -> bytes:
    try:
        with Path(path).open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    if not data.strip():
        raise UserError(f"{path} is empty")
    if len(data) > LARGEST:
        raise UserError(f"{path} has more than {LARGEST // 2**20} MiB: not a table of costs")
    return data


def read_points(path: str | Path) -> list[tuple[float, float]]:
    """The two columns of a csv file with a header, e.g. concurrency,tokens_per_s. Raises UserError."""
    rows = read_table(path)
    names = list(rows[0].values)
    if len(names) != 2:
        raise UserError(f"{path}, line 1: give two columns with a header, e.g. concurrency,tokens_per_s")
    return [(cell(path, row, names[0]), cell(path, row, names[1])) for row in rows]


def cell(path: str | Path, row: Row, column: str) -> float:
    """A number above 0 in a row. Raises UserError naming the line."""
    if column not in row.values:
        raise UserError(f"{path}: no column {column!r}; the columns are {names(row.values)}")
    text = row.values[column]
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise UserError(f"{path}, line {row.line}, column {column!r}: {names([text])} is not a number above 0")
    return value


def chosen(path: str | Path, rows: Sequence[Row], where: Mapping[str, str]) -> list[Row]:
    """The rows whose columns have these values. Raises UserError, saying which values there are."""
    for key, value in where.items():
        if key not in rows[0].values:
            raise UserError(f"{path}: no column {key!r}; the columns are {names(rows[0].values)}")
        kept = [row for row in rows if _same(row.values[key], value)]
        if not kept:
            there = names(dict.fromkeys(row.values[key] for row in rows))
            raise UserError(f"{path}: no row has {key}={value}; left to choose from: {there}")
        rows = kept
    return list(rows)


def names(texts: Iterable[str]) -> str:
    """A file's own texts within one line: quoted, at most so many, each at most so long."""
    said = [repr(text if len(text) <= WIDTH else text[:WIDTH] + "...") for text in texts]
    return ", ".join([*said[:MOST], *(["..."] if len(said) > MOST else [])])


def differing(rows: Sequence[Row], columns: Sequence[str]) -> dict[str, list[str]]:
    """The columns among these in which the rows differ, and their values."""
    values: dict[str, Any] = {key: list(dict.fromkeys(row.values[key] for row in rows)) for key in columns}
    return {key: found for key, found in values.items() if len(found) > 1}


def _same(a: str, b: str) -> bool:
    try:
        return float(a) == float(b)
    except ValueError:
        return a.lower() == b.lower()
