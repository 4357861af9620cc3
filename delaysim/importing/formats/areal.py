"""AReaL's session tracer: `session_tracer/**/sessions-rN.jsonl` (areal-project/AReaL, areal/utils/perf_tracer.py).

A session is one response, a task its group. There are times and an end, no lengths, no versions and no updates.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from delaysim.importing.fields import name, needed, number, whole
from delaysim.importing.lines import Place, Skip, Tally, objects, rows
from delaysim.importing.row import Row

PATTERNS = ("sessions*.jsonl",)
SYSTEM = "AReaL"
STATUS = ("accepted", "rejected", "failed", "dropped", "pending")


def read(files: Sequence[Path], tally: Tally) -> Iterator[Row]:
    """One row per session."""
    return rows(objects(files, tally), _Sessions(tally).row, tally)


class _Sessions:
    """Tells groups apart. Ids start over with each process that appends to the file."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._runs: Counter[tuple[Any, ...]] = Counter()

    def row(self, place: Place, record: dict[str, Any]) -> Iterable[Row]:
        session = needed(whole(record, "session_id"), "session_id")
        task = needed(whole(record, "task_id"), "task_id")
        submitted = needed(number(record, "submit_ts"), "submit_ts")
        status = needed(name(record, "status"), "status")
        done = number(record, "finalized_ts")
        if status not in STATUS:
            raise Skip("status is none of AReaL's")
        if done is not None and done < submitted:
            raise Skip("finalized_ts is before submit_ts")
        process = name(record, "role") or "", whole(record, "rank") or 0
        self._tally.once(*process, session, submitted)
        group = self._group(process, task, session)
        return [Row(group, self._tally.number(group), submitted, done, status=status)]

    def _group(self, process: tuple[str, int], task: int, session: int) -> str:
        before = self._runs[(*process, session)]
        self._runs[(*process, session)] += 1
        start = "/".join(filter(None, (process[0], str(process[1]), str(task))))
        return f"{start}#{before}" if before else start
