"""Costs measured elsewhere: in a run of delaysim, in a csv of trainer benchmarks. No torch."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

from delaysim.clock.lengths import Empirical
from delaysim.errors import UserError
from delaysim.predict.tables import Row, cell, chosen, differing, names, read_table
from delaysim.run.records import read_rows
from delaysim.settings.configfile import load_config

GPUS = ("num_gpus", "gpus", "world_size")
"""Names of the column that counts a row's GPUs."""
SECONDS, RATE = "step_s_mean", "tok_s_mean"
STEP = ("micro_batches", "seq_len")
"""Columns whose product with the GPUs is the tokens of a step."""
MEASURES = ("mfu", "peak_gib")
"""Columns that measure; the others say what was measured, as every column does that does not end in _mean or _std."""


def from_run(path: str | Path) -> dict[str, Any]:
    """What a finished run measured on one device: an update, a sync, its tokens/s and its lengths.

    Medians over its updates, the first one left out (it warms up and fills the pool). Responses that are generated
    together take a token each at every step, so a launch's seconds over its steps give the speed of one response, and
    that of all is what they would make if none had ended yet: then the clock, which lets them end, needs the seconds
    that were measured. Raises UserError.
    """
    run = Path(path)
    cfg = load_config(run / "config.yaml")
    updates, launches = (list(read_rows(run / f"{name}.jsonl")) for name in ("updates", "launches"))
    if len(updates) < 3:
        raise UserError(f"{run} has {len(updates)} finished updates: three or more are needed to calibrate")
    longest: dict[int, list[int]] = {}
    for row in launches:
        longest.setdefault(row["version"], []).append(max(row["lengths"]))
    timed = [(row["update"], _generation(row)) for row in updates[1:]]
    timed = [(version, seconds) for version, seconds in timed if seconds > 0 and version in longest]
    if not timed:
        raise UserError(f"{run}: no update after the first launched groups: its rows do not say how fast it generates")
    chunk = cfg.sampler.chunk
    each = median(_steps(longest[version], chunk) / seconds for version, seconds in timed)
    at_once = cfg.G * round(median(min(chunk, len(longest[version])) for version, _ in timed))
    train = median(sum(row.get(part) or 0.0 for part in ("rescore_s", "reward_s", "train_s")) for row in updates[1:])
    return {
        "B": cfg.B,
        "G": cfg.G,
        "lengths": Empirical(np.array([length for row in launches for length in row["lengths"]], np.int64)),
        "speed": {at_once: at_once * each},
        "slots": at_once,
        "trainer": {1: train},
        "sync": median(row.get("publish_s") or 0.0 for row in updates[1:]),
    }


def _steps(longest: Sequence[int], chunk: int) -> int:
    """Tokens one after the other in a launch: chunks of groups follow each other, each as long as its longest."""
    return sum(max(longest[first : first + chunk]) for first in range(0, len(longest), chunk))


def _generation(row: Mapping[str, Any]) -> float:
    """Seconds that the sampler spent on responses since the row before."""
    return float(row["sampler_s"] if row.get("sampler_s") is not None else row["generate_s"])


def from_csv(path: str | Path, where: Mapping[str, str], tokens: float) -> tuple[dict[float, float], str]:
    """Seconds of an update of so many tokens by GPUs, from the chosen rows, and in words which they are.

    An update takes as many steps' seconds as it has steps' tokens. Rows may differ in their number of GPUs only; rows
    that agree in it are averaged where they measured the same. Raises UserError.
    """
    table = read_table(path)
    gpus = next((name for name in GPUS if name in table[0].values), None)
    if gpus is None:
        raise UserError(f"{path}: no column of GPUs; one of {', '.join(GPUS)} is needed")
    rows = chosen(path, table, {gpus if key in GPUS else key: value for key, value in where.items()})
    said = [key for key in rows[0].values if not key.endswith(("_mean", "_std")) and key not in (gpus, *MEASURES)]
    loose = differing(rows, said)
    if loose:
        key, values = next(iter(loose.items()))
        raise UserError(f"{path}: {len(rows)} rows fit; choose with --row {key}=VALUE: {names(values)}")
    seconds: dict[float, list[float]] = {}
    for row in rows:
        count = cell(path, row, gpus)
        seconds.setdefault(count, []).append(tokens / rate(path, row, count))
    words = ", ".join(f"{key}={value}" for key, value in where.items())
    return {count: fmean(found) for count, found in sorted(seconds.items())}, f"{Path(path).name} ({words})"


def rate(path: str | Path, row: Row, gpus: float) -> float:
    """Tokens/s of a row: of its step where it says what a step is, else as stated."""
    if SECONDS in row.values and all(key in row.values for key in STEP):
        return gpus * cell(path, row, STEP[0]) * cell(path, row, STEP[1]) / cell(path, row, SECONDS)
    return cell(path, row, RATE)
