"""The paper's tables, asked anew on the tiny default: named grids with paired seeds, and a page for each.

Runs what is missing, adds one line per finished cell to docs/results/NAME.csv, and makes the page and the figure from
that file alone, so that an interrupted study goes on on any machine:

    python analysis/studies.py fixed_delay_table --jobs 2   # run, collect, draw
    python analysis/studies.py --draw                       # every page and figure, from the committed files
"""

import argparse
import csv
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from hydra import compose, initialize_config_dir
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf
from studies_page import RESULTS, write

from delaysim.analysis.bias import load_biased
from delaysim.analysis.outcomes import Outcome, load_outcomes
from delaysim.analysis.rowfiles import read_columns
from delaysim.cli.compose import to_config
from delaysim.run.account import FILE
from delaysim.run.cells import run_cell
from delaysim.settings.config import Config
from delaysim.settings.identity import run_path
from delaysim.settings.places import conf_dir

STUDIES: dict[str, list[list[str]]] = {
    "fixed_delay_table": [["seed=0,1,2,3,4", "D=0,16,32,64,128"]],
    "async_lambda": [["seed=0,1,2,3,4"]],
    "eps_grid": [["seed=0,1,2,3,4"]],
    "group_size": [["seed=0,1,2,3,4"]],
    "what_delay_buys": [["seed=0,1,2"]],
    "length_bias": [["seed=0,1,2"]],
    "moe": [["seed=0,1,2"], ["seed=0,1,2", "routing=none", "sampler.dtype=null"]],
}
"""Each grid of conf/sweep/, and what is asked in place of its own values; `moe` a second time without mismatch."""
SETTINGS = ("estimator", "D", "lam", "eps", "G", "B", "lr", "C_gen", "C_update")
MEANS = ("ess", "kept", "intervention", "delay_mean", "length_mean")
BIAS = ("ratio", "shortest", "longest", "ks", "dropped", "delay_max", "reward_ratio")
"""What the account of a run says of its drop policy (delaysim/analysis/bias.py)."""
ROUTED = (
    "flips_engine", "flips_drift", "flips_whole", "flips_whole_tokens", "flips_live", "mismatch_mean", "mismatch_over",
    "log_ratio_sd", "clip_fraction",
)  # fmt: skip
"""What the updates of a mixture of experts say beside them (docs/records.md)."""
UNSAID = {"drop": "none", "routing": "none", "sampler.dtype": "float32"}
FIELDS = (
    *SETTINGS, "eta", *UNSAID, "seed", "run_id", "state", "collapsed", "base", "final", "auc", *MEANS, *BIAS, *ROUTED,
    "version0_share", "sim_time", "tokens", "wall_s", "updates", "times", "accuracy", "samples", "scores",
)  # fmt: skip
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
"""`scores` has one character per problem: right ones among `samples` responses of the last three evaluations."""
lock = Lock()


def main() -> None:
    """Run, collect, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("studies", nargs="*", help=f"of {', '.join(STUDIES)} (default: all)")
    parser.add_argument("--draw", action="store_true", help="only pages and figures, from the committed files")
    parser.add_argument("--runs", default="runs", help="where runs are kept")
    parser.add_argument("--jobs", type=int, default=1, help="runs at once, one CPU thread each")
    parser.add_argument("--seeds", type=int, nargs="+", help="only these, for now")
    options = parser.parse_args()
    for name in options.studies or STUDIES:
        if not options.draw:
            run_study(name, options)
        if table(name).exists():
            write(name, table(name), command(name))


def run_study(name: str, options: Any) -> None:
    """Run the cells that the file lacks, seed by seed, and add each when it is done."""
    done = {row["run_id"] for row in csv.DictReader(table(name).open())} if table(name).exists() else set()
    every = (cfg for grid in STUDIES[name] for cfg in cells(name, grid, options.runs))
    asked = [cfg for cfg in every if options.seeds is None or cfg.seed in options.seeds]
    todo = [cfg for cfg in asked if run_path(cfg).name not in done]
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda cfg: add(name, cfg), todo))


def cells(name: str, grid: list[str], runs: str) -> Iterator[Config]:
    """The configurations of a grid, as the command line composes them."""
    swept = dict(OmegaConf.load(conf_dir() / f"sweep/{name}.yaml").hydra.sweeper.params)
    swept |= dict(text.split("=", 1) for text in grid)
    parsed = OverridesParser.create().parse_overrides([f"{key}={values}" for key, values in swept.items()])
    for (*batch,) in BasicSweeper.split_arguments(parsed, max_batch_size=None):
        for overrides in batch:
            with initialize_config_dir(str(conf_dir()), version_base="1.3"):
                yield to_config(
                    compose("config", [f"+sweep={name}", *overrides, f"runs_dir={runs}", "record.ratios=none"])
                )


def command(name: str) -> str:
    """What to type for the same runs."""
    return "\n    ".join(" ".join(["delaysim", f"+sweep={name}", *grid]) for grid in STUDIES[name])


def table(name: str) -> Path:
    """The committed file of a study."""
    return RESULTS / f"{name}.csv"


def add(name: str, cfg: Config) -> None:
    """Train one cell, or find it finished, and add its line."""
    ended = run_cell(cfg, run_path(cfg))
    if ended.exit_code:
        raise SystemExit(f"{ended.path}: {ended.state}: {ended.message}")
    row = line(load_outcomes(ended.path).runs[0], cfg.evaluation.samples)
    with lock:
        new = not table(name).exists()
        columns = FIELDS if new else next(csv.reader(table(name).open()))
        with table(name).open("a", newline="") as file:
            writer = csv.DictWriter(file, columns, extrasaction="ignore")
            if new:
                writer.writeheader()
            writer.writerow(row)
    print(ended.path.name, row["final"], flush=True)


def biased(run: Path) -> dict[str, float]:
    """What a run's account says of its drop policy; nothing where it left none."""
    return dict(load_biased(run)[0].measures) if (run / FILE).exists() else {}


def line(outcome: Outcome, samples: int) -> dict[str, Any]:
    """What a run says of its cell; enough for every paired statistic at the end of the run."""
    updates = read_columns(outcome.path / "updates.jsonl", (*MEANS, *ROUTED, "wall_s"))
    looks = min(3, len(outcome.curve) - 1)
    right = np.rint(outcome.scores * samples * looks).astype(int)
    return {
        **{key: outcome.settings.get(key, UNSAID.get(key, "")) for key in (*SETTINGS, "eta", *UNSAID)},
        "seed": outcome.seed, "run_id": outcome.run_id, "state": outcome.state, "collapsed": int(outcome.collapsed),
        "base": round(float(outcome.curve[0]), 5), "final": round(outcome.final, 5),
        "auc": round(float(outcome.curve.mean()), 5),
        **{name: round(float(updates[name].mean()), 5) for name in MEANS},
        **{name: round(value, 5) for name, value in biased(outcome.path).items() if name in BIAS},
        **{name: float(f"{updates[name].mean():.4g}") for name in ROUTED if updates[name].notna().all()},
        "version0_share": round(outcome.moments.get("version0_share", 0.0), 4),
        "sim_time": round(outcome.total("sim_time"), 3), "tokens": int(outcome.total("tokens")),
        "wall_s": round(float(updates["wall_s"].sum()), 1),
        "updates": " ".join(f"{x:g}" for x in outcome.axes["updates"]),
        "times": " ".join(f"{x:g}" for x in outcome.axes["sim_time"]),
        "accuracy": " ".join(f"{y:.5f}" for y in outcome.curve),
        "samples": samples * looks, "scores": "".join(DIGITS[n] for n in right),
    }  # fmt: skip


if __name__ == "__main__":
    main()
