"""Some columns of a run's append-only tables, fast."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.json

TYPES = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string(), type(None): pa.float64()}
"""Of a column, by its value in the first row; null is a number that was not finite, or not there yet."""
BLOCK = 2**20
"""Bytes parsed at once; no row is longer by far."""


def read_columns(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """The named columns of a JSON-lines file, null where a row lacks one; a torn last line is left out.

    Only these columns are made, of the types the first row has; where a later row does not fit them, or the first
    lacks one, the whole file is looked at first, at twice the time.
    """
    data = path.read_bytes() if path.exists() else b""
    whole = data[: data.rfind(b"\n") + 1]
    if not whole:
        return pd.DataFrame(columns=list(columns))
    table = _by_first_row(whole, columns)
    table = _by_all_rows(whole) if table is None else table
    missing = [name for name in columns if name not in table.column_names]
    frame = table.select([name for name in columns if name not in missing]).to_pandas()
    return frame.assign(**dict.fromkeys(missing))[list(columns)]


def _by_first_row(data: bytes, columns: Sequence[str]) -> pa.Table | None:
    schema = _schema(json.loads(data[: data.index(b"\n")]), columns)
    if schema is None:
        return None
    parse = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    try:
        return pyarrow.json.read_json(pa.BufferReader(data), _options(data), parse)
    except pa.ArrowInvalid:
        return None


def _schema(row: Mapping[str, Any], columns: Sequence[str]) -> pa.Schema | None:
    """None where the row lacks a column, or has one of another kind."""
    if any(name not in row or type(row[name]) not in TYPES for name in columns):
        return None
    return pa.schema([(name, TYPES[type(row[name])]) for name in columns])


def _by_all_rows(data: bytes) -> pa.Table:
    return pyarrow.json.read_json(pa.BufferReader(data), _options(data))


def _options(data: bytes) -> pyarrow.json.ReadOptions:
    return pyarrow.json.ReadOptions(block_size=min(len(data), BLOCK))
