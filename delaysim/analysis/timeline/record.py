"""What a run's clock recorded, in ticks: the source of every picture of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from delaysim.analysis.rowfiles import read_columns
from delaysim.analysis.timeline.slots import colour
from delaysim.clock import TICKS, Law
from delaysim.clock.ledger import FATES, NEVER
from delaysim.errors import UserError
from delaysim.files import read_json
from delaysim.run.records import SCHEMA
from delaysim.settings.config import MEASURED, Config
from delaysim.settings.configfile import load_config

Ticks = NDArray[np.int64]
UNITS = ("launch", "done", "ready", "consumed", "dropped")
COUNTS = ("prompt", "attempt", "version", "update", "delay", "pre_queue", "in_queue")


@dataclass(frozen=True)
class Record:
    """Columns over groups, by id, and over updates; ticks, NEVER = did not happen before the end."""

    name: str
    cfg: Config
    law: Law
    """The settled one."""
    groups: Mapping[str, Ticks]
    """UNITS [ticks] and COUNTS."""
    fate: NDArray[np.str_]
    lengths: NDArray[np.int64]
    """Per group and response [tokens]; NEVER where it was not generated."""
    poll: Ticks
    """Per update: when its mini-batch was taken."""
    publish: Ticks
    """Per update: when its weights were published."""

    def __len__(self) -> int:
        """Groups launched."""
        return len(self.fate)

    @property
    def stop(self) -> int:
        """The last publish, at which the run ends [tick]."""
        return int(self.publish[-1])

    @property
    def unit(self) -> str:
        """Of its times: a measured run's are seconds."""
        return "s" if self.cfg.suite_name == MEASURED else "units"

    @cached_property
    def rows(self) -> dict[str, NDArray[Any]]:
        """As `delaysim.clock.trace.group_rows` has them: times in units, NaN = did not happen; fates by number."""
        times = {name: np.where(self.groups[name] == NEVER, np.nan, self.groups[name] / TICKS) for name in UNITS}
        fate = np.array([FATES.index(name) for name in self.fate.tolist()], np.int8)
        return {**{name: self.groups[name] for name in COUNTS}, **times, "fate": fate}

    @property
    def generated(self) -> NDArray[np.int64]:
        """[groups, G] tokens of the groups that were generated, which are the first ones."""
        return self.lengths[: int((self.lengths[:, 0] != NEVER).sum())]

    @property
    def trained(self) -> NDArray[np.bool_]:
        """Which groups an update consumed."""
        return self.groups["update"] != NEVER

    @cached_property
    def left(self) -> Ticks:
        """When each group's generation ended or was given up; NEVER for one that was under way at the end."""
        done = self.groups["done"]
        return np.where(done != NEVER, done, self.groups["dropped"])

    @cached_property
    def until(self) -> Ticks:
        """The same, the end of the run in place of NEVER."""
        return np.where(self.left != NEVER, self.left, self.stop)

    @cached_property
    def taken(self) -> Ticks:
        """When each group left the ready queue; NEVER for one that never was in it, or still was at the end."""
        consumed = self.groups["consumed"]
        gone = np.where(consumed != NEVER, consumed, self.groups["dropped"])
        return np.where(self.groups["ready"] != NEVER, gone, NEVER)

    @cached_property
    def slot(self) -> Ticks:
        """The generation slot of each group: the lowest that is free at its launch."""
        return colour(self.groups["launch"], self.until)

    @cached_property
    def trained_until(self) -> Ticks:
        """When each update ended: at its publish, or before it where the learner waits until the sampler has them."""
        if self.cfg.suite_name == MEASURED:
            return self.publish
        return np.minimum(self.poll + self.law.training_ticks, self.publish)

    @property
    def learner_free(self) -> Ticks:
        """Per update: when the learner could have begun it."""
        return np.append(0, self.publish[:-1])

    @cached_property
    def syncs(self) -> list[tuple[int, int, int]]:
        """(start, end, version) of weights on their way to the sampler in the background, as clock/weights.py has it.

        One goes at a time, and begins at a publish.
        """
        if self.law.sync_mode != "background" or not self.law.sync_ticks:
            return []
        found, wanted, free = [], False, 0
        for update, publish in enumerate(self.publish.tolist()):
            wanted = wanted or self.law.syncs_after(update)
            if wanted and publish >= free:
                wanted, free = False, publish + self.law.sync_ticks
                found.append((publish, free, update + 1))
        return found

    @property
    def steady_update(self) -> int | None:
        """First update of the steady state; None where the run does not get there."""
        return self.law.steady_from if self.law.steady_from < len(self.poll) else None

    @cached_property
    def members(self) -> list[Ticks]:
        """Per update: the groups it consumed, by id."""
        order = np.argsort(self.groups["update"], kind="stable")
        ends = np.searchsorted(self.groups["update"][order], np.arange(len(self.poll) + 1))
        return [order[low:high] for low, high in pairwise(ends.tolist())]

    @property
    def busy(self) -> float:
        """The learner's share of the run's time."""
        return float((self.trained_until - self.poll).sum() / self.stop)


def read_record(path: Path) -> Record:
    """The record of a trace directory or of a finished training run. Raises UserError, saying what is missing."""
    if not (path / "trace.parquet").exists() or not (path / "manifest.json").exists():
        raise UserError(f"{path}: no trace.parquet; mode=trace writes one, and a training run that reached its end")
    manifest, cfg = read_json(path / "manifest.json"), load_config(path / "config.yaml")
    if manifest.get("schema") != SCHEMA:
        raise UserError(f"{path} has schema {manifest.get('schema')}, this delaysim reads {SCHEMA}")
    table = _table(path / "trace.parquet")
    groups = _groups(table)
    law = Law(**manifest["law"])
    poll, publish = _updates(path, groups, law)
    fate, lengths = _fates(table["fate"]), _lengths(table["lengths"], cfg.G)
    return Record(path.resolve().name, cfg, law, groups, fate, lengths, poll, publish)


def _table(path: Path) -> pa.Table:
    try:
        return pq.read_table(path).unify_dictionaries().combine_chunks()
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path}: {str(error).splitlines()[0]}; write the trace or copy the run again") from None


def _groups(table: pa.Table) -> dict[str, Ticks]:
    """A directory written before groups could be dropped has no column for it."""
    known = {name: _ticks(table[name]) for name in UNITS if name in table.column_names}
    counts = {name: _counts(table[name]) for name in COUNTS if name in table.column_names}
    absent = {"ready": known["done"], "dropped": np.full(len(table), NEVER), "prompt": np.arange(len(table))}
    return absent | known | counts


def _ticks(units: pa.ChunkedArray) -> Ticks:
    times = units.fill_null(NEVER).to_numpy()
    return np.where(times == NEVER, NEVER, np.rint(times * TICKS)).astype(np.int64)


def _counts(column: pa.ChunkedArray) -> Ticks:
    return column.fill_null(NEVER).to_numpy().astype(np.int64)


def _fates(column: pa.ChunkedArray) -> NDArray[np.str_]:
    (chunk,) = column.chunks
    return np.array(chunk.dictionary.to_pylist())[chunk.indices.to_numpy()]


def _lengths(column: pa.ChunkedArray, group_size: int) -> NDArray[np.int64]:
    (chunk,) = column.chunks
    table = np.full((len(chunk), group_size), NEVER, np.int64)
    table[chunk.is_valid().to_numpy(zero_copy_only=False)] = chunk.flatten().to_numpy().reshape(-1, group_size)
    return table


def _updates(path: Path, groups: Mapping[str, Ticks], law: Law) -> tuple[Ticks, Ticks]:
    """Poll and publish: from clock.parquet, else from the groups and the rows of the updates."""
    if (path / "clock.parquet").exists():
        clock = _table(path / "clock.parquet")
        return _ticks(clock["poll"]), _ticks(clock["publish"])
    update = groups["update"]
    trained = update != NEVER
    poll = np.zeros(update.max() + 1, np.int64)
    poll[update[trained]] = groups["consumed"][trained]
    rows = read_columns(path / "updates.jsonl", ("sim_time",))
    if len(rows):
        return poll, np.rint(rows["sim_time"].to_numpy(float) * TICKS).astype(np.int64)
    return poll, poll + law.training_ticks
