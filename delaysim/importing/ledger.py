"""The ledger: columns over the responses of a log, what its groups went through, and the parquet file of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delaysim.files import replacing
from delaysim.importing.row import KEPT, Row

Floats = NDArray[np.float64]
TEXTS = ("group_id", "status")
FRACTIONAL = (
    "submit_t", "done_t", "version_mean", "reported_mean", "reported_max", "reported_in_flight", "reported_in_queue",
    "delay_tokens",
)  # fmt: skip
"""Columns of floats; the other numbers are whole."""


@dataclass(frozen=True)
class Ledger:
    """What a log says, one row a response. Numbers are floats, NaN where the log does not say."""

    texts: Mapping[str, list[str | None]]
    numbers: Mapping[str, Floats]

    @classmethod
    def of(cls, rows: Iterable[Row]) -> "Ledger":
        """The rows as columns."""
        columns = list(zip(*rows, strict=True)) or [()] * len(Row._fields)
        named = dict(zip(Row._fields, columns, strict=True))
        return cls(
            {key: list(named[key]) for key in TEXTS},
            {key: np.array(values, np.float64) for key, values in named.items() if key not in TEXTS},
        )

    def __len__(self) -> int:
        return len(self.numbers["sample"])

    def __getitem__(self, column: str) -> Floats:
        return self.numbers[column]

    @property
    def said(self) -> list[str]:
        """Columns that the log has something in."""
        return [key for key in Row._fields if self._says(key)]

    def _says(self, key: str) -> bool:
        if key in TEXTS:
            return any(value is not None for value in self.texts[key])
        return bool(np.isfinite(self.numbers[key]).any())

    @cached_property
    def kept(self) -> NDArray[np.bool_]:
        """Responses that reached training: with a consuming update, or a status that says so."""
        status = np.array([text in KEPT for text in self.texts["status"]], bool)
        return status | np.isfinite(self["consumed_update"])

    @cached_property
    def delay(self) -> Floats:
        """Delay n - s by response [updates]: the consuming update minus the version of its first token."""
        return self["consumed_update"] - self["version_start"]

    @cached_property
    def groups(self) -> "Groups":
        """One row per group and consuming update, a response without a group being its own."""
        return Groups.of(self)


@dataclass(frozen=True)
class Groups:
    """Columns over groups, in the order in which they were launched as far as the log says. NaN where it does not."""

    update: Floats
    """Consuming update."""
    version: Floats
    """Of its oldest response."""
    submit: Floats
    """Of its first response [s]."""
    done: Floats
    """Of its last response [s]."""
    longest: Floats
    """Its longest response [tokens]."""
    size: NDArray[np.int64]
    """Responses."""
    kept: NDArray[np.bool_]
    """Whether any of them reached training."""
    of_row: NDArray[np.int64]
    """The group of each row of the ledger."""

    @property
    def delay(self) -> Floats:
        """Delay n - s [updates]: the group shares the delay of its oldest response."""
        return self.update - self.version

    @classmethod
    def of(cls, ledger: Ledger) -> "Groups":
        """Responses put together."""
        codes = _codes(ledger)
        count = int(codes.max()) + 1
        update, version, submit = (
            _gathered(np.fmin, codes, ledger[key]) for key in ("consumed_update", "version_start", "submit_t")
        )
        done, longest = (_gathered(np.fmax, codes, ledger[key]) for key in ("done_t", "tokens"))
        kept = np.bincount(codes, ledger.kept) > 0
        order = np.lexsort((np.arange(count), submit, version))
        return cls(
            update=update[order],
            version=version[order],
            submit=submit[order],
            done=done[order],
            longest=longest[order],
            size=np.bincount(codes)[order],
            kept=kept[order],
            of_row=np.argsort(order)[codes],
        )


def _gathered(by: np.ufunc, codes: NDArray[np.int64], values: Floats) -> Floats:
    """The least or largest known value of each group."""
    found = np.full(int(codes.max()) + 1, np.nan)
    by.at(found, codes, values)
    return found


def _codes(ledger: Ledger) -> NDArray[np.int64]:
    """The group of each response, from 0 in order of appearance.

    A group's id may come again for another update. A response that no update consumed belongs to the one there is.
    """
    updates = [None if update != update else update for update in ledger["consumed_update"].tolist()]
    names = ledger.texts["group_id"]
    several: dict[str, set[float]] = {}
    for name, update in zip(names, updates, strict=True):
        if name is not None and update is not None:
            several.setdefault(name, set()).add(update)
    found: dict[tuple[object, ...], int] = {}
    codes = []
    for row, (name, update) in enumerate(zip(names, updates, strict=True)):
        key: tuple[object, ...] = (row,) if name is None else (name, update)
        if name is not None and len(several.get(name, ())) == 1:
            key = (name, None)
        codes.append(found.setdefault(key, len(found)))
    return np.array(codes, np.int64)


def write_ledger(path: Path, ledger: Ledger, derived: Mapping[str, Floats]) -> None:
    """Write the rows with their derived columns as parquet; what is not known is null.

    Arrow arrays are made from buffers: Arrow's own conversions import pandas.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {key: _text_column(values) for key, values in ledger.texts.items()}
    columns |= {key: _column(key, values) for key, values in {**ledger.numbers, **derived}.items()}
    with replacing(path) as file:
        pq.write_table(pa.table({key: columns[key] for key in (*Row._fields, *derived)}), file)


def _column(key: str, values: Floats) -> Any:
    import pyarrow as pa

    known = np.isfinite(values)
    if key in FRACTIONAL:
        return _array(pa.float64(), values, known)
    return _array(pa.int64(), np.where(known, values, 0).astype(np.int64), known)


def _text_column(values: Sequence[str | None]) -> Any:
    import pyarrow as pa

    names = list(dict.fromkeys(text for text in values if text is not None))
    code_of = {name: code for code, name in enumerate(names)}
    codes = np.array([-1 if text is None else code_of[text] for text in values], np.int32)
    encoded = [name.encode(errors="replace") for name in names]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    texts = pa.Array.from_buffers(pa.string(), len(names), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))])
    return pa.DictionaryArray.from_arrays(_array(pa.int32(), codes.clip(0), codes >= 0), texts)


def _array(kind: Any, values: NDArray[Any], known: NDArray[np.bool_]) -> Any:
    import pyarrow as pa

    bitmap = pa.py_buffer(np.packbits(known, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [bitmap, pa.py_buffer(np.ascontiguousarray(values))])
