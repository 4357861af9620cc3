"""Estimators on the tiny default: which loss survives how much delay, at published settings and at matched strength.

Runs what is missing, adds one line per finished cell to docs/results/estimators.csv, and makes the page and the figure
from that file alone:

    python analysis/estimators.py            # everything: about 190 runs of half a minute
    python analysis/estimators.py --draw     # page and figure from the committed file
"""

import argparse
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs/results"
CSV = RESULTS / "estimators.csv"
METHODS = {
    "none": ("estimator=reinforce",),
    "is": ("estimator=is",),
    "grpo": ("estimator=grpo",),
    "tic": ("estimator=tic",),
    "gmc": ("estimator=gmc",),
    "tis": ("estimator=tis",),
    "vcpo": ("estimator=tis", "rule=vcpo"),
    "gac": ("estimator=grpo", "rule=gac"),
    "cispo": ("estimator=cispo",),
    "sapo": ("estimator=sapo",),
    "gspo": ("estimator=gspo",),
    "a3po": ("estimator=a3po",),
}
"""Label: what to type."""
OWN_AT_0 = ("grpo", "vcpo", "gac")
"""Without delay every other method is GRPO's run, bit for bit."""
DELAYS, SEEDS = (64, 128, 16), (0, 1, 2)
FIELDS = (
    "part", "method", "D", "seed", "lr", "eps", "run_id", "state", "collapsed", "base", "final", "gain", "gain_half",
    "auc", "ess", "kept", "removed", "wall_s", "updates", "accuracy",
)  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One run of the study."""

    part: str
    """published | matched | lr."""
    method: str
    D: int
    seed: int
    more: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, ...]:
        """What identifies it in the file."""
        return self.part, self.method, str(self.D), str(self.seed), " ".join(self.more)


def main() -> None:
    """Run, collect, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draw", action="store_true", help="only page and figure, from the committed file")
    parser.add_argument("--runs", default="runs", help="where runs are kept")
    parser.add_argument("--jobs", type=int, default=1, help="runs at once, one CPU thread each")
    options = parser.parse_args()
    if not options.draw:
        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(lambda cell: run(cell, options.runs), published()))


def published() -> Iterator[Cell]:
    """Every method at its published threshold."""
    for method in OWN_AT_0:
        yield from (Cell("published", method, 0, seed) for seed in SEEDS)
    for delay in DELAYS:
        yield from (Cell("published", method, delay, seed) for seed in SEEDS for method in METHODS)


def run(cell: Cell, runs: str) -> None:
    """Train one cell unless the committed file has it."""
    settings = [f"D={cell.D}", f"seed={cell.seed}", *METHODS[cell.method], *cell.more, f"runs_dir={runs}"]
    command = [sys.executable, "-m", "delaysim", "+suite=fixed_delay", *settings, "display=plain"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    print(cell, done.stdout.splitlines()[-8:-3], flush=True)


if __name__ == "__main__":
    main()
