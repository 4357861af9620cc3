"""Estimators on the tiny default: which loss survives how much delay, at published settings and at matched strength.

Runs what is missing, adds one line per finished cell to docs/results/estimators.csv, and makes the page and the figure
from that file alone:

    python analysis/estimators.py --jobs 2   # everything: about 200 runs of half a minute
    python analysis/estimators.py --draw     # page and figure from the committed file
"""

import argparse
import csv
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from estimators_page import DELAYS, LR, LRS, MATCHED_AT, METHODS, OWN_AT_0, RESULTS, SEEDS, write
from hydra import compose, initialize_config_dir

from delaysim.accuracy import has_collapsed, paired_gain, summarise
from delaysim.cli.compose import to_config
from delaysim.files import read_json
from delaysim.run.records import read_rows
from delaysim.settings.chosen import chosen_estimator
from delaysim.settings.config import Config
from delaysim.settings.identity import run_path, threshold
from delaysim.settings.places import conf_dir

CSV = RESULTS / "estimators.csv"
MATCHED = ("tic", "grpo", "tis", "cispo", "gspo", "a3po")
"""Methods with a threshold; each gets the one at which it intervenes as often as GMC on GMC's own recorded data."""
LR_CHECK = ("grpo", "tic", "gmc")
FIELDS = (
    "part", "method", "D", "seed", "lr", "eps", "run_id", "state", "collapsed", "base", "final", "gain", "gain_half",
    "auc", "ess", "kept", "removed", "wall_s", "updates", "accuracy",
)  # fmt: skip
lock = Lock()


@dataclass(frozen=True)
class Cell:
    """One run of the study."""

    part: str
    """published | matched | lr."""
    method: str
    D: int
    seed: int
    lr: float = LR
    eps: float | None = None
    """None = published."""

    @property
    def key(self) -> tuple[str, ...]:
        """What identifies it in the file."""
        return self.part, self.method, str(self.D), str(self.seed), str(self.lr)

    def settings(self, runs: str) -> list[str]:
        """What to type after `delaysim`."""
        eps = [] if self.eps is None else [f"eps={self.eps:.6g}"]
        fixed = ["+suite=fixed_delay", f"D={self.D}", f"seed={self.seed}", f"lr={self.lr:g}", f"runs_dir={runs}"]
        return [*fixed, *METHODS[self.method], *eps]


def main() -> None:
    """Run, collect, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draw", action="store_true", help="only page and figure, from the committed file")
    parser.add_argument("--runs", default="runs", help="where runs are kept")
    parser.add_argument("--jobs", type=int, default=1, help="runs at once, one CPU thread each")
    options = parser.parse_args()
    if not options.draw:
        go(published(), options)
        go(matched(options.runs), options)
        go(lr_check(), options)
    write(CSV)


def go(cells: Iterator[Cell], options: Any) -> None:
    """Run the cells that the file lacks."""
    done = present()
    todo = [cell for cell in cells if cell.key not in done]
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda cell: add(cell, run(cell, options.runs)), todo))


def published() -> Iterator[Cell]:
    """Every method at its published threshold."""
    for method in OWN_AT_0:
        yield from (Cell("published", method, 0, seed) for seed in SEEDS)
    for delay in DELAYS[1:]:
        yield from (Cell("published", method, delay, seed) for seed in SEEDS for method in METHODS)


def matched(runs: str) -> Iterator[Cell]:
    """Methods with a threshold, as strong as GMC."""
    for delay in MATCHED_AT:
        cells = [Cell("matched", method, delay, seed) for seed in SEEDS for method in MATCHED]
        if present().issuperset(cell.key for cell in cells):
            continue  # finding the thresholds takes a run
        found = thresholds(delay, runs)
        yield from (replace(cell, eps=found[cell.method]) for cell in cells)


def lr_check() -> Iterator[Cell]:
    """The other learning rates, at one delay."""
    yield from (Cell("lr", m, 64, seed, lr=lr) for lr in LRS if lr != LR for seed in SEEDS for m in LR_CHECK)


def thresholds(delay: int, runs: str) -> dict[str, float]:
    """The eps of each method that intervenes as often as GMC does, on what GMC's run of seed 0 recorded."""
    from delaysim.screening.match import match, strength, thinned
    from delaysim.screening.sources import read

    cells = {method: Cell("published", method, delay, 0) for method in ("gmc", *MATCHED)}
    estimators = {m: chosen_estimator(config(cell, runs).estimator) for m, cell in cells.items()}
    batches = thinned(batch.data for batch in read([run(cells["gmc"], runs)], 8))
    target = strength(estimators["gmc"], batches, "intervention")
    found = {m: match(estimators[m], target, batches, "intervention").estimator.eps for m in MATCHED}
    return {method: float(f"{eps:.6g}") for method, eps in found.items() if eps is not None}


def config(cell: Cell, runs: str) -> Config:
    """The configuration of a cell, as the command line composes it."""
    with lock, initialize_config_dir(str(conf_dir()), version_base="1.3"):
        return to_config(compose("config", cell.settings(runs)))


def run(cell: Cell, runs: str) -> Path:
    """Train one cell, or find it finished; its run directory."""
    path = run_path(config(cell, runs))
    status = path / "status.json"
    if status.exists() and read_json(status)["state"] in ("done", "collapsed"):
        return path
    subprocess.run([sys.executable, "-m", "delaysim", *cell.settings(runs), "display=quiet"], check=True)
    return path


def present() -> set[tuple[str, ...]]:
    """The cells that the committed file has."""
    rows = csv.DictReader(CSV.open()) if CSV.exists() else []
    return {(row["part"], row["method"], row["D"], row["seed"], row["lr"]) for row in rows}


def add(cell: Cell, path: Path) -> None:
    """One line for a finished cell."""
    row = line(cell, path)
    with lock:
        new = not CSV.exists()
        with CSV.open("a", newline="") as file:
            writer = csv.DictWriter(file, FIELDS)
            if new:
                writer.writeheader()
            writer.writerow(row)
    print(*cell.key, path.name, flush=True)


def line(cell: Cell, path: Path) -> dict[str, Any]:
    """What a run directory says of its cell."""
    evals, updates = list(read_rows(path / "evals.jsonl")), list(read_rows(path / "updates.jsonl"))
    history = summarise(evals)
    last = history[-1].update
    gain, half = paired_gain([r for r in evals if r["update"] == 0], [r for r in evals if r["update"] == last])
    state = read_json(path / "status.json")["state"]
    eps = cell.eps if cell.eps is not None else _published_eps(cell)
    return {
        "part": cell.part, "method": cell.method, "D": cell.D, "seed": cell.seed, "lr": cell.lr,
        "eps": "" if eps is None else f"{eps:.6g}", "run_id": path.name, "state": state,
        "collapsed": int(state == "collapsed" or has_collapsed(history, 3, 2.0)),
        "base": round(history[0].pass1, 5),
        "final": round(float(np.mean([a.pass1 for a in history[-3:]])), 5),
        "gain": round(gain, 5), "gain_half": round(half, 5),
        "auc": round(float(np.mean([a.pass1 for a in history])), 5),
        **{name: _mean(updates, name) for name in ("ess", "kept", "removed")},
        "wall_s": round(sum(row["wall_s"] for row in updates), 1),
        "updates": " ".join(str(a.update) for a in history),
        "accuracy": " ".join(f"{a.pass1:.5f}" for a in history),
    }  # fmt: skip


def _published_eps(cell: Cell) -> float | None:
    return threshold(config(cell, "runs"))


def _mean(updates: list[dict[str, Any]], name: str) -> float:
    return round(float(np.mean([row[name] for row in updates if row[name] is not None])), 5)


if __name__ == "__main__":
    main()
