"""Any CSV or JSON-lines file whose columns have, or are given, the names of the common trace."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from delaysim.data import JSONL
from delaysim.errors import UserError
from delaysim.importing.fields import moment, name, number, typed, whole
from delaysim.importing.lines import Place, Record, Skip, Tally, objects, rows, table
from delaysim.importing.row import Row

PATTERNS = ("*.csv", "*.jsonl", "*.ndjson")
SYSTEM = None
NAMES = (
    "group_id", "sample", "submit_t", "done_t", "tokens", "version_start", "version_end", "version_mean",
    "consumed_update", "status", "delay",
)  # fmt: skip
"""`delay` in place of version_start: consumed_update - delay."""


def read(files: Sequence[Path], tally: Tally, columns: Mapping[str, str]) -> Iterator[Row]:
    """One row per line; `columns` gives the file's column of a name. Raises UserError where a column is missing."""
    for key in columns:
        if key not in NAMES:
            raise UserError(f"--columns {key}={columns[key]}: no such name; choose one of {', '.join(NAMES)}")
    for path in files:
        records = objects([path], tally) if path.suffix in JSONL else table(path, tally)
        found = {**{key: key for key in NAMES}, **columns}
        yield from rows(_with_columns(path, records, columns, found), partial(_row, tally, found), tally)


def _with_columns(
    path: Path, records: Iterator[Record], asked: Mapping[str, str], found: Mapping[str, str]
) -> Iterator[Record]:
    """The records, once the first of them has been looked at."""
    first = next(records, None)
    if first is None:
        return
    have = first[1]
    missing = [column for column in asked.values() if column not in have]
    if missing or not any(column in have for column in found.values()):
        what = f"no column {missing[0]!r}" if missing else "no column of the common trace"
        raise UserError(f"{path}: {what}; its columns are {_shown(have)}; give --columns NAME=COLUMN")
    yield from chain([first], records)


def _shown(names: Iterable[str]) -> str:
    text = ", ".join(repr(name) for name in names)
    return text if len(text) < 400 else f"{text[:400]} ..."


def _row(tally: Tally, columns: Mapping[str, str], place: Place, record: dict[str, Any]) -> Iterable[Row]:
    texts = {key: record.get(columns[key]) for key in ("group_id", "status")}
    values = {key: typed(record.get(column)) for key, column in columns.items() if key not in texts}
    group, sample = name(texts, "group_id"), whole(values, "sample")
    update, delay, start = (whole(values, key) for key in ("consumed_update", "delay", "version_start"))
    if delay is not None:
        if update is None or delay > update:
            raise Skip("delay without consumed_update" if update is None else "delay is more than consumed_update")
        start = update - delay
    if update is not None and start is not None and start > update:
        raise Skip("version_start is after consumed_update")
    if group is not None and sample is not None:
        tally.once(group, sample, update, start)
    times = moment(values, "submit_t"), moment(values, "done_t")
    end, mean = whole(values, "version_end"), number(values, "version_mean")
    status = name(texts, "status")
    return [Row(group, sample, *times, whole(values, "tokens"), start, end, mean, update, status and status.lower())]
