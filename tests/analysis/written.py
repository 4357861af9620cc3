"""Run directories written by hand, whose every number is known; no training."""

import json
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from settings import make_config

from delaysim.run.records import SCHEMA
from delaysim.settings.configfile import save_config
from delaysim.settings.identity import identity

N, B, G, EVERY, SAMPLES = 24, 2, 4, 8, 2
PROBLEMS = 8
TOKENS = [3, 15, 8, 2]
"""What every kept response says: `0>5` and the stop token, in the tiny model's characters."""
LEG = {
    "from_update": 0, "started": "2026-01-01T00:00:00Z", "command": "delaysim +suite=fixed_delay D=8", "threads": 1,
    "pid": 1, "machine": {"host": "h", "cpu": "a processor", "cores": 2, "python": "3.11.7"},
    "packages": {"numpy": "2.4.6", "torch": "2.13.0"},
}  # fmt: skip


@cache
def _config(suite, *overrides):
    return make_config(
        f"updates={N}", f"B={B}", f"G={G}", f"evaluation.every={EVERY}", f"evaluation.problems={PROBLEMS}",
        f"evaluation.samples={SAMPLES}", *overrides, suite=suite,
    )  # fmt: skip


def write_run(
    root, estimator="grpo", D=0, seed=0, right=1.0, base=0.5, overrides=(), stop=None, suite="fixed_delay", **changes
):
    """A finished run: `base` before training, then `right` at every evaluation; shares of every problem, in halves.

    `stop`: a number that is not finite ended it at this update; then it has no trace and no moments, as a real one.
    `changes` to `status`, `leg`, `problem` (a function from number to name), `tokens`, `log`, `update` (of every row);
    `account`: its own.
    """
    name = f"{estimator}-D{D}-s{seed}" + "".join(f"-{o.replace('=', '')}" for o in overrides if "path" not in o)
    path = root / suite / name
    path.mkdir(parents=True)
    asked = [f"D={D}"] if suite == "fixed_delay" else []
    cfg = _config(suite, f"estimator={estimator}", *asked, f"seed={seed}", *overrides)
    save_config(cfg, path / "config.yaml")
    code = {"version": "0.1.0", "commit": "0123456789abcdef", "diff": None}
    law = {"look_ahead": D, "l_ref": 1.0}
    _json(path / "manifest.json", schema=SCHEMA, run_id=name, identity=identity(cfg), law=law, parameters=1,
          legs=[LEG | changes.get("leg", {})], code=code)  # fmt: skip
    _json(
        path / "status.json", **{"state": "done", "update": N, "updates": N, "error": None} | changes.get("status", {})
    )
    if "account" in changes:
        _json(path / "account.json", **changes["account"])
    n = N if stop is None else stop
    (path / "run.log").write_text(changes.get("log", "running\n"))
    _rows(path / "evals.jsonl", (row for row in _evals(base, right, changes) if row["update"] <= n))
    delays = np.minimum(np.arange(n), D)
    _rows(path / "updates.jsonl", [_update(n, int(d), D) | changes.get("update", {}) for n, d in enumerate(delays)])
    _rows(path / "groups.jsonl", [_group(n, g, int(d)) for n, d in enumerate(delays) for g in range(B)])
    if stop is not None:
        _json(path / "status.json", state="collapsed", update=n, updates=N, error="the gradient is not finite")
        return path
    _trace(path / "trace.parquet", np.repeat(delays, B))
    shares = {"version0_share": float((np.arange(N) <= D).mean()), "never_trained_share": 0.25}
    _json(path / "moments.json", delay_mean=float(delays.mean()), delay_mean_steady=float(D), delay_p5=0.0,
          delay_p50=float(np.median(delays)), delay_p95=float(D), delay_max=float(D), **shares)  # fmt: skip
    return path


def _update(n, delay, D):
    """ESS 1/(1 + delay), kept 1 - delay/100, a largest ratio of 1 + delay, intervention delay/10."""
    return {
        "update": n, "delay_mean": float(delay), "length_mean": 10.0, "ess": 1 / (1 + delay), "ratio_max": 1.0 + delay,
        "hill": None, "kept": 1 - delay / 100, "removed": delay / 50, "intervention": delay / 10, "kl_pi_mu": 0.125,
        "entropy": 0.5, "truncated": 0.0, "log_ratio_sd": 0.1, "tokens": 80, "wall_s": 0.5, "saturated": 0,
        "sim_time": 86.0 * (n + 1) / (1 + D),
    }  # fmt: skip


def _group(n, g, delay):
    measures = {"ess": 1 / (1 + delay), "ratio_max": 1.0, "kept": 1.0, "removed": 0.0, "intervention": 0.0}
    return {"update": n, "group": n * B + g, "delay": delay, "version": n - delay, "length_mean": 10.0} | measures


def _evals(base, right, changes):
    name = changes.get("problem", lambda q: f"chain/test/{q}")
    for update in range(0, N + 1, EVERY):
        share = base if update == 0 else right
        for q in range(PROBLEMS):
            for r in range(SAMPLES + 1):
                correct = share > 0 if r == 0 else r <= round(share * SAMPLES)
                row = {"update": update, "problem": name(q), "response": r, "greedy": r == 0, "correct": correct,
                       "status": "", "length": 4, "truncated": False}  # fmt: skip
                yield row | ({"tokens": changes.get("tokens", TOKENS)} if q < 4 else {})


def _trace(path, delays):
    update = np.repeat(np.arange(N), B)
    columns = {"version": update - delays, "update": update, "delay": delays}
    table = pa.table({name: pa.array(values, pa.int32()) for name, values in columns.items()})
    lengths = pa.array([[10] * G] * len(delays), pa.list_(pa.int32()))
    pq.write_table(table.append_column("lengths", lengths), path)


def _json(path, **values):
    path.write_text(json.dumps(values))


def _rows(path, rows):
    path.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))
