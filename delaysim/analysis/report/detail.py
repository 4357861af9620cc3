"""What a page shows of one run besides its scores, small: read run by run and thinned at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from delaysim.analysis.outcomes import Outcome
from delaysim.analysis.rowfiles import read_columns
from delaysim.errors import UserError
from delaysim.files import read_json
from delaysim.run.account import read_account
from delaysim.theory import fourth_moment

Array = NDArray[np.float64]
FLIPS = ("flips_engine", "flips_drift", "flips_whole", "flips_whole_tokens", "flips_live", "mismatch_mean")
"""Of a mixture of experts."""
MEASURES = (
    "ess", "ratio_max", "hill", "kept", "removed", "intervention", "kl_pi_mu", "entropy", "truncated", "log_ratio_sd",
    *FLIPS,
)  # fmt: skip
SUMS = ("tokens", "wall_s", "saturated")
LATE = 0.25
"""Share of a run, its end, over which ratios are averaged: there a fixed delay is at its full size."""
POINTS = 24
"""Of a series within a run."""
BY_DELAY = ("delay", "ess", "ratio_max", "kept", "removed", "intervention")


@dataclass(frozen=True)
class Detail:
    """One run."""

    late: Mapping[str, float]
    """Each of MEASURES over the last LATE of the updates; ratio_max as a median."""
    whole: Mapping[str, float]
    """Means of MEASURES, and SUMS, over the whole run."""
    series: Mapping[str, Array]
    """Each of MEASURES, (2, points): updates, means over stretches of them."""
    delays: Mapping[int, int]
    """Realised delay to consumed groups."""
    tau4: float
    trained: Array
    """(2, points): updates, mean length of the responses trained on [tokens]."""
    generated: Array
    """(2, points): version, mean length of the responses generated then, trained on or not."""
    selected: float
    """Mean length of the groups trained on over that of all groups of the same versions: 1 = the queue picks none."""
    by_delay: pd.DataFrame | None
    """Means of BY_DELAY by delay bin, where delays differ within the run by more than its warm-up."""
    manifest: Mapping[str, Any]
    account: Mapping[str, Any]
    """What became of its groups and tokens, and what held it; empty where the run left none."""


def read_detail(run: Outcome) -> Detail:
    """Read what its directory has."""
    rows = read_columns(run.path / "updates.jsonl", ("update", "length_mean", *MEASURES, *SUMS))
    trace = _trace(run.path / "trace.parquet")
    consumed = trace[trace["update"].notna()]
    delays = consumed["delay"].to_numpy(float)
    values, counts = np.unique(delays.astype(int), return_counts=True)
    return Detail(
        late=_late(rows),
        whole={name: _mean(rows[name]) for name in MEASURES} | {name: float(rows[name].sum()) for name in SUMS},
        series={name: _thinned(rows["update"], rows[name]) for name in MEASURES},
        delays=dict(zip(values.tolist(), counts.tolist(), strict=True)),
        tau4=fourth_moment(delays) if len(delays) else 0.0,
        trained=_thinned(rows["update"], rows["length_mean"]),
        generated=_thinned(trace["version"], trace["length"]),
        selected=selected(trace),
        by_delay=None if run.settings["suite"] == "fixed_delay" else _by_delay(run.path / "groups.jsonl"),
        manifest=read_json(run.path / "manifest.json"),
        account=read_account(run.path),
    )


def _late(rows: pd.DataFrame) -> dict[str, float]:
    end = rows.tail(max(1, round(LATE * len(rows))))
    return {name: _mean(end[name]) for name in MEASURES} | {"ratio_max": _median(end["ratio_max"])}


def _mean(column: pd.Series) -> float:
    return float(column.astype(float).mean()) if column.notna().any() else float("nan")


def _median(column: pd.Series) -> float:
    return float(column.astype(float).median()) if column.notna().any() else float("nan")


def _trace(path: Path) -> pd.DataFrame:
    """Version, update, delay and mean length of every group that was generated.

    A run that a number ended has no trace: of every group that it consumed.
    """
    if not path.exists():
        columns = ("version", "update", "delay", "length_mean")
        return read_columns(path.with_name("groups.jsonl"), columns).rename(columns={"length_mean": "length"})
    try:
        table = pq.read_table(path, columns=["version", "update", "delay", "lengths"])
    except (pa.ArrowException, OSError) as error:
        what = str(error).splitlines()[0]
        raise UserError(f"{path}: {what}: copy the run again, or move this file away to use groups.jsonl") from None
    frame = table.drop_columns(["lengths"]).to_pandas()
    return frame.assign(length=_mean_lengths(table["lengths"].combine_chunks()))


def _mean_lengths(lists: Any) -> Array:
    """Mean of each list, NaN for null."""
    known = ~np.asarray(lists.is_null())
    found = np.full(len(lists), np.nan)
    flat = lists.drop_null()
    sizes = np.diff(flat.offsets.to_numpy())
    if len(flat):
        found[known] = np.add.reduceat(flat.flatten().to_numpy().astype(float), np.r_[0, np.cumsum(sizes)[:-1]]) / sizes
    return found


def selected(trace: pd.DataFrame) -> float:
    """Mean length of consumed groups over the mean of everything that their versions generated."""
    known = trace[trace["length"].notna()]
    at_version = known.groupby("version")["length"].transform("mean")
    consumed = known["update"].notna()
    return float(known["length"][consumed].mean() / at_version[consumed].mean()) if consumed.any() else float("nan")


def _thinned(x: pd.Series, y: pd.Series) -> Array:
    """Means over POINTS stretches of x of equal width, empty ones left out."""
    known = y.notna()
    at, value = x[known].to_numpy(float), y[known].to_numpy(float)
    if not len(at):
        return np.empty((2, 0))
    stretch = np.minimum((at * POINTS / (at.max() + 1)).astype(int), POINTS - 1)
    count = np.bincount(stretch, minlength=POINTS)
    sums = (np.bincount(stretch, weights=w, minlength=POINTS) for w in (at, value))
    return np.stack([s[count > 0] / count[count > 0] for s in sums])


def _by_delay(path: Path) -> pd.DataFrame | None:
    """Bins from 0, 1, 2, 4, 8, ... and the number of groups in each."""
    groups = read_columns(path, BY_DELAY).astype(float)
    if groups.empty:
        return None
    low = np.where(groups["delay"] > 0, 2 ** np.floor(np.log2(groups["delay"].clip(lower=1))), 0).astype(int)
    binned = groups.groupby(low)
    return binned[list(BY_DELAY)].mean().assign(groups=binned.size())
