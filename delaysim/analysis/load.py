"""Run directories as tidy pandas frames."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from delaysim.errors import UserError
from delaysim.files import read_json
from delaysim.run.records import SCHEMA, read_rows
from delaysim.settings.configfile import load_config
from delaysim.settings.identity import estimator_name, model_name, task_name, threshold


class Frames(NamedTuple):
    """Every run below a directory; the frames share the column `run_id`."""

    runs: pd.DataFrame
    """One row per run: its settings, how it ended, its delay."""
    updates: pd.DataFrame
    """One row per update."""
    groups: pd.DataFrame
    """One row per consumed group."""
    evals: pd.DataFrame
    """One row per evaluation, problem and response."""


def load_runs(path: str | Path) -> Frames:
    """Read one run directory, or every one below a directory; traces have no training rows and are left out.

    Raises UserError where there is none, or one is of another schema.
    """
    found = run_paths(Path(path))
    rows = {name: _frame(found, name) for name in ("updates", "groups", "evals")}
    return Frames(pd.DataFrame([_run_row(run) for run in found]), **rows)


def run_paths(root: Path) -> list[Path]:
    """The run directories at or below `root`, in order of name.

    Raises UserError where there is none, or one is of another schema.
    """
    found = [manifest.parent for manifest in sorted(root.rglob("manifest.json")) if _is_run(manifest)]
    if not found:
        raise UserError(f"{root}: no run directory here or below; a run starts with delaysim +suite=fixed_delay D=128")
    return found


def _is_run(manifest: Path) -> bool:
    schema = read_json(manifest).get("schema")
    if schema != SCHEMA:
        raise UserError(f"{manifest.parent} has schema {schema}, this delaysim reads {SCHEMA}")
    return (manifest.parent / "updates.jsonl").exists()


def _frame(runs: list[Path], name: str) -> pd.DataFrame:
    frames = [pd.DataFrame(list(read_rows(run / f"{name}.jsonl"))).assign(run_id=run.name) for run in runs]
    frame = pd.concat(frames, ignore_index=True)
    return frame[["run_id", *[column for column in frame.columns if column != "run_id"]]]


def _run_row(run: Path) -> dict[str, Any]:
    cfg, manifest = load_config(run / "config.yaml"), read_json(run / "manifest.json")
    status, moments = _json_or_empty(run / "status.json"), _json_or_empty(run / "moments.json")
    return {
        "run_id": run.name,
        "path": str(run),
        "suite": cfg.suite_name,
        "estimator": estimator_name(cfg),
        "eps": threshold(cfg),
        "rule": cfg.rule.name,
        "advantage": cfg.learner.advantage,
        "aggregation": cfg.learner.aggregation,
        "D": cfg.D,
        "lam": cfg.clock.lam,
        "eta": manifest["law"]["look_ahead"],
        "L_ref": manifest["law"]["l_ref"] if cfg.clock.lam else None,
        "C_gen": cfg.clock.C_gen,
        "C_update": cfg.clock.C_update,
        "G": cfg.G,
        "B": cfg.B,
        "N": cfg.updates,
        "seed": cfg.seed,
        "lr": cfg.learner.lr,
        "model": model_name(cfg),
        "task": task_name(cfg),
        "state": status.get("state"),
        "error": status.get("error"),
        **moments,
    }


def _json_or_empty(path: Path) -> dict[str, Any]:
    return dict(read_json(path)) if path.exists() else {}


def by_delay(groups: pd.DataFrame) -> pd.DataFrame:
    """Means of the numeric columns of `groups` by run and delay bin (from 0, 1, 2, 4, 8, ...), and their number."""
    lower = np.where(groups["delay"] > 0, 2 ** np.floor(np.log2(groups["delay"].clip(lower=1))), 0).astype(int)
    binned = groups.assign(delay_from=lower)
    measures = binned.select_dtypes("number").columns.difference(["update", "group", "version", "delay_from"])
    grouped = binned.groupby(["run_id", "delay_from"])
    return grouped[list(measures)].mean().assign(groups=grouped.size()).reset_index()
