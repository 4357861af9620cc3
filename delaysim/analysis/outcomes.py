"""What each run came to: its score on every held-out problem, its curve on four axes, what it cost, how it was set."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from delaysim.accuracy import below_base, mean_se
from delaysim.analysis.load import run_paths
from delaysim.analysis.rowfiles import read_columns
from delaysim.analysis.settings import run_settings
from delaysim.errors import UserError
from delaysim.files import read_json

AXES = {
    "updates": "learner updates",
    "trajectories": "responses trained on",
    "tokens": "response tokens trained on",
    "sim_time": "simulated time",
}
"""What two runs can be matched on."""
TIMED = ("C_gen", "C_update", "lam")
"""Simulated times compare only at equal values of these."""
LOOKS = 3
"""A final score is the mean of so many last evaluations; the base never counts among them."""
ENDED = ("done", "collapsed")
TOGETHER = 2
"""Runs read at once: parsing lets go of the interpreter."""


@dataclass(frozen=True)
class Outcome:
    """One finished run."""

    run_id: str
    path: Path
    settings: Mapping[str, Any]
    """Every setting that decides its rows but the seed, flat, short names where there are any."""
    seed: int
    state: str
    collapsed: bool
    """By the rule of its configuration, or because a number stopped being finite."""
    problems: tuple[str, ...]
    shares: NDArray[np.float64]
    """(evaluations, problems): share of right sampled responses; 0 where a collapsed run never came."""
    greedy: NDArray[np.float64]
    """(evaluations,): share of right greedy responses."""
    axes: Mapping[str, NDArray[np.float64]]
    """For each of `AXES`, (evaluations,): how far the run was at each evaluation, the base at 0."""
    reached: int
    """Updates done; fewer than N where a number stopped being finite."""
    moments: Mapping[str, float]
    """Of the realised delay."""
    sets: tuple[str, ...] = ()
    """(problems,): the set of each, where there are several."""
    clusters: tuple[str, ...] = ()
    """(problems,): problems with the same label count as one draw."""
    look_ahead: int | None = None
    """Of the run's law [updates]: what a setting of `auto` came to; None = no such limit."""

    @property
    def curve(self) -> NDArray[np.float64]:
        """(evaluations,): pass@1."""
        return self.shares.mean(axis=1)

    @property
    def scores(self) -> NDArray[np.float64]:
        """(problems,): mean of the last `LOOKS` evaluations."""
        return self.shares[1:][-LOOKS:].mean(axis=0)

    @property
    def final(self) -> float:
        """pass@1 at the end, as the mean of the last `LOOKS` evaluations."""
        return float(self.scores.mean())

    def scores_at(self, axis: str, x: float) -> NDArray[np.float64]:
        """(problems,): the shares at a point of an axis, by linear interpolation between evaluations."""
        at = self.axes[axis]
        right = int(np.clip(np.searchsorted(at, x), 1, len(at) - 1))
        weight = np.clip((x - at[right - 1]) / (at[right] - at[right - 1]), 0, 1)
        return (1 - weight) * self.shares[right - 1] + weight * self.shares[right]

    def total(self, axis: str) -> float:
        """How far the whole run went."""
        return float(self.axes[axis][-1])

    @property
    def time_per_update(self) -> float:
        """[sim units]."""
        return self.total("sim_time") / max(self.reached, 1)


@dataclass(frozen=True)
class Outcomes:
    """The finished runs below a directory, and what is not among them."""

    runs: tuple[Outcome, ...]
    unfinished: Mapping[str, str]
    """Run id to state: running, interrupted, failed, and runs without evaluations."""


def load_outcomes(path: str | Path) -> Outcomes:
    """Read every finished run below a directory. Raises UserError where none is finished."""
    runs = [(run, _state(run)) for run in run_paths(Path(path))]
    with ThreadPoolExecutor(TOGETHER) as pool:
        outcomes = list(pool.map(lambda of: _outcome(*of) if of[1] in ENDED else None, runs))
    finished = [outcome for outcome in outcomes if outcome is not None]
    unfinished = {
        run.name: state if state not in ENDED else "without evaluations"
        for (run, state), outcome in zip(runs, outcomes, strict=True)
        if outcome is None
    }
    if not finished:
        raise UserError(f"{path}: no finished run here or below; delaysim status {path} shows how far they are")
    return Outcomes(tuple(finished), unfinished)


def _state(run: Path) -> str:
    status = run / "status.json"
    return str(read_json(status).get("state")) if status.exists() else "starting"


def _outcome(run: Path, state: str) -> Outcome | None:
    manifest = read_json(run / "manifest.json")
    identity = manifest["identity"]
    evals = read_columns(run / "evals.jsonl", ("update", "problem", "greedy", "correct"))
    due = planned(identity["N"], identity["evaluation"]["every"])
    if evals.empty:
        return None
    rows = read_columns(run / "updates.jsonl", ("update", "tokens", "sim_time"))
    shares, greedy = _shares(evals, due)
    rule = identity["evaluation"]
    curve, base_se = shares.mean(axis=1), mean_se(shares[0].tolist())[1]
    return Outcome(
        run_id=run.name,
        path=run,
        settings=run_settings(run, identity),
        seed=identity["seed"],
        state=state,
        collapsed=state == "collapsed"
        or below_base(curve.tolist(), base_se, rule["collapse_looks"], rule["collapse_se"]),
        problems=tuple(evals["problem"].unique()),
        shares=shares,
        greedy=greedy,
        axes=_axes(rows, due, identity["B"] * identity["G"]),
        reached=len(rows),
        moments=_moments(run),
        look_ahead=manifest["law"]["look_ahead"],
    )


def _moments(run: Path) -> dict[str, float]:
    """Of the trace; a run that a number ended has none, and those that its consumed groups tell."""
    if (run / "moments.json").exists():
        return dict(read_json(run / "moments.json"))
    groups = read_columns(run / "groups.jsonl", ("delay", "version"))
    if groups.empty:
        return {}
    delays = groups["delay"].to_numpy(float)
    shares = {"version0_share": float((groups["version"] == 0).mean())}
    quantiles = {f"delay_p{q}": float(np.percentile(delays, q)) for q in (5, 50, 95, 99)}
    return {"delay_mean": float(delays.mean()), "delay_max": float(delays.max()), **quantiles, **shares}


def planned(n: int, every: int | None) -> list[int]:
    """The updates after which a run of `n` is evaluated, the base first."""
    return sorted({0, n, *(range(0, n, every) if every else ())})


def _shares(evals: pd.DataFrame, due: list[int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Shares of right responses by evaluation and problem, in order of appearance, and of greedy ones by evaluation."""
    greedy, correct = (evals[name].to_numpy(bool) for name in ("greedy", "correct"))
    problem, names = pd.factorize(evals["problem"])
    at = np.searchsorted(due, evals["update"].to_numpy())
    judged = ~greedy if not greedy.all() else greedy
    shares = _means(at[judged] * len(names) + problem[judged], correct[judged], len(due) * len(names))
    return np.nan_to_num(shares).reshape(len(due), -1), _means(at[greedy], correct[greedy], len(due))


def _means(place: NDArray[np.intp], value: NDArray[np.bool_], places: int) -> NDArray[np.float64]:
    """Mean by place; NaN where there is none."""
    count = np.bincount(place, minlength=places)
    with np.errstate(invalid="ignore"):
        return np.bincount(place, weights=value, minlength=places) / count


def _axes(rows: pd.DataFrame, due: list[int], responses: int) -> dict[str, NDArray[np.float64]]:
    """A run that ended early has its last values at the evaluations it never reached."""
    reached = np.minimum(np.array(due), len(rows))
    tokens, times = (np.concatenate([[0.0], rows[name].to_numpy(float)]) for name in ("tokens", "sim_time"))
    return {
        "updates": np.array(due, float),
        "trajectories": np.array(due, float) * responses,
        "tokens": tokens.cumsum()[reached],
        "sim_time": times[reached],
    }
