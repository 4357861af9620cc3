"""Times of a trace's rows as the integers they came from."""

from collections.abc import Mapping

import numpy as np

from delaysim.clock.law import TICKS
from delaysim.clock.ledger import IntArray
from delaysim.clock.trace import Column


def of_rows(rows: Mapping[str, Column], name: str, missing: int) -> IntArray:
    """A column of times [units] in ticks; `missing` for what did not happen."""
    times = rows[name] * TICKS
    absent = np.isnan(times)
    times[absent] = 0.0
    ticks: IntArray = np.rint(times, out=times).astype(np.int64)
    ticks[absent] = missing
    return ticks
