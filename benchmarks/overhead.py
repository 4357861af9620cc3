"""Share of a run's wall time outside generation, reward, training, evaluation and checkpoints; and start-up times.

python benchmarks/overhead.py
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def rest_share(runs: Path) -> float:
    """`rest_s` over `wall_s` of one run of the tiny default."""
    (path,) = runs.glob("*/*/updates.jsonl")
    rows = [json.loads(line) for line in path.open()]
    return sum(row["rest_s"] for row in rows) / sum(row["wall_s"] for row in rows)


def started(run: Path) -> float:
    """When a run's first responses were on disk [seconds since the epoch]: its launches file was first written."""
    return (run / "launches.jsonl").stat().st_mtime


def main() -> None:
    """One run, then a sweep of three cells that stop after one update each."""
    with tempfile.TemporaryDirectory() as folder:
        once = ["+suite=fixed_delay", "D=8", "updates=60", "display=quiet", f"runs_dir={folder}/one"]
        subprocess.run([sys.executable, "-m", "delaysim", *once], check=True, stdout=subprocess.DEVNULL)
        print(f"outside the named parts: {rest_share(Path(folder) / 'one'):.2%} of the wall time (bar: 3 %)")
        single = time.time()
        short = ["updates=1", "evaluation.problems=1", "evaluation.samples=0", "D=0", "+suite=fixed_delay"]
        words = [*short, f"runs_dir={folder}/two", "display=quiet"]
        subprocess.run([sys.executable, "-m", "delaysim", *words], check=True, stdout=subprocess.DEVNULL)
        (run,) = (Path(folder) / "two").glob("*/*")
        print(f"one run, process start to first generation: {started(run) - single:.2f} s (bar: 5 s)")
        words = [*short, "seed=0,1,2,3", f"runs_dir={folder}/three"]
        subprocess.run([sys.executable, "-m", "delaysim", "-m", *words], check=True, stdout=subprocess.DEVNULL)
        runs = sorted((Path(folder) / "three").glob("*/*"), key=started)
        ended = [(run / "status.json").stat().st_mtime for run in runs]
        waits = [started(b) - end for b, end in zip(runs[1:], ended, strict=False)]
        print("sweep, end of a cell to the next one's first generation: " + ", ".join(f"{w:.2f} s" for w in waits))


if __name__ == "__main__":
    main()
