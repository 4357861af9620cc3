"""trace.parquet: one row per group, for traces and for training runs. Imports no torch and no pandas."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from delaysim.clock.ledger import NEVER
from delaysim.clock.trace import Column
from delaysim.files import write_atomic

NULLABLE = ("ready_version", "update", "delay", "pre_queue", "in_queue")
TIMES = ("launch", "done", "consumed")


def write_trace(path: Path, rows: Mapping[str, Column], lengths: NDArray[np.integer], generated: int) -> None:
    """Write the rows of `group_rows`, with the lengths [groups, G] of the first `generated` groups, null after."""
    columns = {name: _column(name, values) for name, values in rows.items()}
    columns["lengths"] = _lists(lengths[:generated], len(rows["group"]))
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink, compression="snappy")
    write_atomic(path, sink.getvalue().to_pybytes())


def _column(name: str, values: Column) -> pa.Array:
    if name in NULLABLE:
        return pa.array(values, mask=values == NEVER)
    if name in TIMES:
        return pa.array(values, mask=np.isnan(values))
    return pa.array(values).dictionary_encode() if values.dtype.kind == "U" else pa.array(values)


def _lists(lengths: NDArray[np.integer], rows: int) -> pa.Array:
    count, size = lengths.shape
    offsets = np.minimum(np.arange(rows + 1), count) * size
    nulls = np.arange(rows + 1) >= count
    nulls[-1] = False
    starts = pa.array(offsets.astype(np.int32), mask=nulls if count < rows else None)
    return pa.ListArray.from_arrays(starts, pa.array(lengths.ravel().astype(np.int32)))
