"""The report over 200 runs of 800 updates: seconds and peak memory, in a process of its own.

    python benchmarks/report.py [RUN_DIR ...]

The runs are made from real ones (without arguments from two that are trained here): rows repeated up to 800 updates,
seeds and settings altered, answers drawn anew around a curve that falls with the delay.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

UPDATES, EVERY, PROBLEMS, SAMPLES = 800, 20, 256, 2
DELAYS, SEEDS = (0, 16, 64, 128), 17
ESTIMATORS = {"grpo": (0.2, 0.35), "tic": (0.28, 0.12), "gmc": (0.28, 0.03)}
"""Threshold, and how much accuracy the largest delay costs."""


def main():
    options = _parser().parse_args()
    with tempfile.TemporaryDirectory(dir=options.at) as folder:
        root = Path(folder)
        source = options.source or _trained(root / "source")
        started = time.perf_counter()
        runs = fabricate(source, root / "runs", options.runs)
        size = sum(file.stat().st_size for file in (root / "runs").rglob("*") if file.is_file())
        print(f"{runs} runs of {UPDATES} updates, {size / 1e9:.2f} GB, made in {time.perf_counter() - started:.0f} s")
        for what, code in COMMANDS.items():
            wall, cpu, peak, said = _measured(code.format(runs=root / "runs", out=options.out or root / "report.html"))
            print(f"{what:14s} {wall:6.1f} s, {cpu:6.1f} CPU-s, {peak / 1024:5.0f} MB  {said}", flush=True)


COMMANDS = {
    "load_outcomes": "from delaysim.analysis.outcomes import load_outcomes; load_outcomes('{runs}')",
    "report": "from delaysim.cli.report import report; report(['{runs}', '-o', '{out}'])",
}
MEASURE = """
import resource, sys
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, used.ru_maxrss, file=sys.stderr)
"""


def _parser():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", nargs="?", type=Path, help="a finished run to make the others from")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--at", type=Path, help="a folder for 2 GB of runs (default: the system's)")
    parser.add_argument("--out", type=Path, help="keep the page here")
    return parser


def _measured(code):
    """Wall and CPU seconds of a whole process, its peak memory [kB], its last line."""
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code + "\n" + MEASURE], check=True, capture_output=True, text=True)
    said = done.stdout.splitlines()[-1].rpartition(": ")[2] if done.stdout else ""
    cpu, peak = done.stderr.split()[-2:]
    return time.perf_counter() - started, float(cpu), int(peak), said


def _trained(folder):
    command = [sys.executable, "-m", "delaysim", "+suite=fixed_delay", "D=16", "updates=240", f"runs_dir={folder}"]
    subprocess.run(command, check=True, capture_output=True)
    return next((folder / "fixed_delay").iterdir())


def fabricate(source, target, wanted):
    """Runs of every estimator, delay and seed, until there are enough."""
    made = 0
    for seed in range(10**6):
        for estimator, (eps, loss) in ESTIMATORS.items():
            for delay in DELAYS:
                if made == wanted:
                    return made
                run = target / f"fixed_delay/{estimator}-D{delay}-s{seed}"
                _run(source, run, {"name": estimator, "eps": eps}, delay, seed, loss * delay / DELAYS[-1])
                made += 1


def _run(source, run, estimator, delay, seed, loss):
    run.mkdir(parents=True)
    rng = np.random.default_rng((seed, delay, *estimator["name"].encode()))
    _manifest(source, run, estimator, delay, seed)
    for name in ("config.yaml", "run.log", "account.json"):
        if (source / name).exists():
            (run / name).write_bytes((source / name).read_bytes())
    updates = [json.loads(line) for line in (source / "updates.jsonl").read_text().splitlines()]
    groups = [json.loads(line) for line in (source / "groups.jsonl").read_text().splitlines()]
    per = len(groups) // len(updates)
    with (run / "updates.jsonl").open("w") as up, (run / "groups.jsonl").open("w") as gr:
        for n in range(UPDATES):
            row = updates[n % len(updates)] | {
                "update": n,
                "sim_time": 86.0 * (n + 1) / (1 + min(delay, 85)),
                "delay_mean": min(n, delay),
            }
            up.write(json.dumps(row, separators=(",", ":")) + "\n")
            for g in groups[(n % len(updates)) * per : (n % len(updates) + 1) * per]:
                gr.write(json.dumps(g | {"update": n, "delay": min(n, delay)}, separators=(",", ":")) + "\n")
    _evals(source, run, rng, loss)
    _trace(source, run, delay, per)


def _manifest(source, run, estimator, delay, seed):
    manifest = json.loads((source / "manifest.json").read_text())
    identity = manifest["identity"] | {"seed": seed, "N": UPDATES, "estimator": estimator}
    identity["clock"] = identity["clock"] | {"eta": delay}
    (run / "manifest.json").write_text(json.dumps(manifest | {"run_id": run.name, "identity": identity}))
    status = json.loads((source / "status.json").read_text())
    (run / "status.json").write_text(json.dumps(status | {"state": "done", "update": UPDATES, "updates": UPDATES}))
    delays = np.minimum(np.arange(UPDATES), delay)
    moments = json.loads((source / "moments.json").read_text())
    own = {
        "delay_mean": delays.mean(),
        "delay_max": delays.max(),
        "delay_p50": np.median(delays),
        "delay_mean_steady": delay,
    }
    own |= {"version0_share": min(delay + 1, UPDATES) / UPDATES, "sim_time": 86.0 * UPDATES / (1 + min(delay, 85))}
    (run / "moments.json").write_text(json.dumps(moments | {k: float(v) for k, v in own.items()}))


def _evals(source, run, rng, loss):
    hard = np.random.default_rng(7).normal(0, 1, PROBLEMS)
    kept = {}
    for line in (source / "evals.jsonl").read_text().splitlines():
        row = json.loads(line)
        if "tokens" in row:
            kept[row["problem"], row["response"]] = row["tokens"]
    drift = rng.normal(0, 0.1)
    with (run / "evals.jsonl").open("w") as file:
        for update in range(0, UPDATES + 1, EVERY):
            level = -1.0 + (4.0 - 9 * loss + drift) * (1 - np.exp(-update / 150))
            right = rng.random((PROBLEMS, SAMPLES + 1)) < 1 / (1 + np.exp(-(level + hard)))[:, None]
            lengths = rng.integers(5, 40, (PROBLEMS, SAMPLES + 1))
            for q in range(PROBLEMS):
                for r in range(SAMPLES + 1):
                    problem = f"chain/test/{q}"
                    correct = bool(right[q, r])
                    row = {"update": update, "problem": problem, "response": r, "greedy": r == 0, "correct": correct,
                           "status": "correct" if correct else "wrong", "length": int(lengths[q, r]),
                           "truncated": False}  # fmt: skip
                    if (problem, r) in kept:
                        row["tokens"] = kept[problem, r]
                    file.write(json.dumps(row, separators=(",", ":")) + "\n")


def _trace(source, run, delay, per):
    table = pq.read_table(source / "trace.parquet")
    n = UPDATES * per
    update = np.repeat(np.arange(UPDATES), per)
    lengths = table["lengths"].combine_chunks().drop_null()
    columns = {
        "group": np.arange(n, dtype=np.int32),
        "version": np.maximum(update - delay, 0).astype(np.int32),
        "update": update.astype(np.int32),
        "delay": np.minimum(update, delay).astype(np.int32),
        "lengths": lengths.take(pa.array(np.arange(n) % len(lengths))),
        "fate": np.full(n, "trained"),
    }
    pq.write_table(pa.table(columns), run / "trace.parquet")


if __name__ == "__main__":
    main()
