"""trace.parquet: one row per group; clock.parquet: one per update. For traces and for training runs. Imports no torch.

Arrow arrays are made from buffers: Arrow's own conversions import pandas, which a trace has no other use for.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from delaysim.clock.law import TICKS
from delaysim.clock.ledger import FATES, NEVER, Ledger
from delaysim.clock.trace import Column
from delaysim.files import replacing

ROWS = 1 << 17
"""Rows that are encoded at once."""
NULLABLE = ("ready_version", "update", "delay", "pre_queue", "in_queue")
TYPES = {np.dtype(np.float64): pa.float64(), np.dtype(np.int32): pa.int32(), np.dtype(np.int8): pa.int8()}


def write_trace(path: Path, rows: Mapping[str, Column], lengths: NDArray[np.integer]) -> None:
    """Write the rows of `group_rows` with the lengths [groups, G] of the first groups; later groups have null."""
    columns = {name: _column(name, values) for name, values in rows.items()}
    columns["fate"] = pa.DictionaryArray.from_arrays(columns["fate"], _strings(FATES))
    columns["lengths"] = _lists(lengths, len(rows["group"]))
    with replacing(path) as file:
        pq.write_table(
            pa.table(columns), file, compression="snappy", use_dictionary=["fate", "delay"], row_group_size=ROWS
        )
    pa.default_memory_pool().release_unused()  # Arrow would keep it, and the account of the same rows comes next


def write_clock(path: Path, ledger: Ledger) -> None:
    """Write when each mini-batch was taken and its weights published [sim units], one row per update."""
    times = {name: np.array(getattr(ledger, name), np.int64) / TICKS for name in ("poll", "publish")}
    columns = {"update": np.arange(len(ledger.publish), dtype=np.int32), **times}
    with replacing(path) as file:
        pq.write_table(pa.table({name: _array(np.asarray(values)) for name, values in columns.items()}), file)


def _column(name: str, values: Column) -> pa.Array:
    valid = None
    if name in NULLABLE:
        valid = values != NEVER
    elif values.dtype.kind == "f":
        valid = ~np.isnan(values)
    return _array(values, valid)


def _array(values: Column, valid: NDArray[np.bool_] | None = None) -> pa.Array:
    bitmap = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(TYPES[values.dtype], len(values), [bitmap, pa.py_buffer(values)])


def _strings(values: tuple[str, ...]) -> pa.Array:
    ends = np.cumsum([0, *map(len, values)], dtype=np.int32)
    return pa.Array.from_buffers(
        pa.string(), len(values), [None, pa.py_buffer(ends), pa.py_buffer("".join(values).encode())]
    )


def _lists(lengths: NDArray[np.integer], rows: int) -> pa.Array:
    count, size = lengths.shape
    offsets = (np.minimum(np.arange(rows + 1), count) * size).astype(np.int32)
    valid = pa.py_buffer(np.packbits(np.arange(rows) < count, bitorder="little"))
    items = _array(lengths.astype(np.int32, copy=False).ravel())
    return pa.Array.from_buffers(pa.list_(pa.int32()), rows, [valid, pa.py_buffer(offsets)], children=[items])
