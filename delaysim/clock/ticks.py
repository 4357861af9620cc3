"""Times of a trace's rows as the integers they came from."""

from collections.abc import Mapping

import numpy as np

from delaysim.clock.law import TICKS
from delaysim.clock.ledger import IntArray
from delaysim.clock.trace import Column


def of_rows(rows: Mapping[str, Column], name: str, missing: int) -> IntArray:
    """A column of times [units] in ticks; `missing` for what did not happen."""
    values = rows[name]
    absent = np.isnan(values)
    return np.where(absent, missing, np.rint(np.where(absent, 0.0, values) * TICKS).astype(np.int64))
