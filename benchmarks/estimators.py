"""The estimator's own share of an update's time, and how fast recorded data is screened.

python benchmarks/estimators.py [--groups 100000]
"""

import argparse
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from delaysim.estimators import discover, make
from delaysim.ratios import Recorded, frame
from delaysim.run.records import read_rows
from delaysim.screening.sources import read

FRAMES = 64
"""Different mini-batches in the screened file, repeated until there are enough groups."""


def share(updates: int = 40) -> None:
    """Every estimator on the mini-batches that a run recorded, against that run's own time per update."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["+suite=fixed_delay", "D=16", f"updates={updates}", "display=quiet", f"runs_dir={folder}"]
        subprocess.run([sys.executable, "-m", "delaysim", *words], check=True, stdout=subprocess.DEVNULL)
        (run,) = Path(folder).glob("*/*")
        rows = list(read_rows(run / "updates.jsonl"))
        update = float(np.mean([row["generate_s"] + row["reward_s"] + row["train_s"] for row in rows]))
        batches = [batch.data for batch in read([run], 8)]
    shares = {name: seconds(name, batches) / update for name in discover()}
    worst = max(shares, key=shares.__getitem__)
    print(f"one update (generate, reward, train): {1e3 * update:.1f} ms; of it the estimator (bar: 2 %):")
    print("  " + ", ".join(f"{name} {value:.2%}" for name, value in sorted(shares.items(), key=lambda kv: -kv[1])))
    print(f"  largest: {worst} {shares[worst]:.2%}")


def seconds(name: str, batches: list) -> float:
    """Median seconds of one call, ratios included."""
    estimator, spent = make(name), []
    for batch in batches:
        fresh = replace(batch)  # with nothing computed yet
        start = time.perf_counter()
        estimator.coefficients(fresh)
        spent.append(time.perf_counter() - start)
    return float(np.median(spent))


def screening(groups: int, tokens: int = 512) -> None:
    """A file of recorded groups of 8 responses through the ten default estimators: wall time and peak memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ratios.bin"
        write(path, groups, tokens)
        code = (
            "import resource, sys, time; start = time.time(); from delaysim.cli.screen import screen; "
            f"screen([{str(path)!r}, '--format', 'csv']); "
            "peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024; "
            "print(f'{time.time() - start:.1f} s, {peak:.0f} MB', file=sys.stderr)"
        )
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        size = path.stat().st_size / 1e9
    print(
        f"screening {groups:,} groups of 8 x {tokens} tokens ({size:.1f} GB) through 10 methods (bar: 60 s): ", end=""
    )
    print(done.stderr.strip())


def write(path: Path, groups: int, tokens: int) -> None:
    """Frames of 8 groups with normal log-ratios."""
    rng, frames = np.random.default_rng(0), []
    for n in range(FRAMES):
        logp = -rng.exponential(0.5, 64 * tokens)
        moved = logp - rng.normal(0, 0.03, len(logp))
        delays = rng.integers(0, 200, 8)
        rewards = rng.integers(0, 2, (8, 8)).astype(float)
        lengths = np.full((8, 8), tokens)
        frames.append(frame(Recorded(n, logp, moved, lengths, rewards, rewards - 0.5, delays, np.arange(8))))
    with path.open("wb") as file:
        for n in range(groups // 8):
            file.write(frames[n % FRAMES])


def main() -> None:
    """Both."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--groups", type=int, default=100_000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    share()
    screening(options.groups)


if __name__ == "__main__":
    main()
