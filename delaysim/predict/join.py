"""Accuracy against hours: an operation's speed from the clock, what its delay does from finished runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from delaysim.analysis.grid import select, spelled, varying
from delaysim.analysis.outcomes import Outcome, load_outcomes
from delaysim.analysis.stats.estimates import quantile
from delaysim.errors import UserError
from delaysim.predict.simulate import Prediction

NEAR = 1.5
"""A run stands for delays up to this factor away from its own; delays below 1 count as 1 here."""


@dataclass(frozen=True)
class Curve:
    """The runs of one estimator at one delay, seed by seed."""

    estimator: str
    delay: float
    """Mean in the steady state [updates]."""
    runs: tuple[Outcome, ...]

    @property
    def updates(self) -> float:
        """How far the shortest of them goes."""
        return min(run.total("updates") for run in self.runs)

    def accuracy(self, updates: float) -> "Accuracy":
        """Pass@1 after so many updates, linear between evaluations; a collapsed run counts as it is."""
        found = [float(np.interp(updates, run.axes["updates"], run.curve)) for run in self.runs]
        spread = float(np.std(found, ddof=1)) if len(found) > 1 else float("nan")
        return Accuracy(fmean(found), quantile(0.975, len(found) - 1) * spread / len(found) ** 0.5, len(found))


@dataclass(frozen=True)
class Accuracy:
    """A mean over seeds."""

    mean: float
    half_width: float
    """Of its 95 % t interval over seeds; NaN with one."""
    seeds: int


@dataclass(frozen=True)
class Line:
    """One operation, one estimator: what is reached by when."""

    prediction: Prediction
    estimator: str
    stands_for: float | None
    """Delay of the runs that were looked up; None where all are fresher."""
    staler: bool
    """No run is near: these have more delay, and so no more accuracy, as far as delay never helps."""
    at: Mapping[float, Accuracy | None]
    """By hours; None where the runs end before."""


def curves(runs: Sequence[Outcome]) -> list[Curve]:
    """Runs by estimator and delay. Raises UserError where something else varies too."""
    delays = {run.run_id: delay_of(run) for run in runs}
    loose = [key for key in varying(runs, ("estimator",)) if key not in ("D", "eta", "lam", "suite")]
    if loose:
        values = ", ".join(dict.fromkeys(spelled(run.settings.get(loose[0])) for run in runs))
        raise UserError(f"{loose[0]} varies in the runs too ({values}): choose with --where {loose[0]}=VALUE")
    cells: dict[tuple[str, float], dict[int, Outcome]] = {}
    for run in runs:
        cells.setdefault((str(run.settings["estimator"]), round(delays[run.run_id], 2)), {})[run.seed] = run
    return [Curve(name, delay, tuple(cells[name, delay].values())) for name, delay in sorted(cells)]


def delay_of(run: Outcome) -> float:
    """D of a fixed delay, 0 without one, else the mean that came out, in the steady state where there is one."""
    if run.settings["suite"] == "fixed_delay":
        return float(run.settings["D"])
    if run.settings["suite"] == "no_delay":
        return 0.0
    steady: Any = run.moments.get("delay_mean_steady")
    return float(steady if steady is not None and steady == steady else run.moments["delay_mean"])


def looked_up(curves: Sequence[Curve], delay: float) -> Curve | None:
    """The curve whose delay is nearest in ratio, if it is within `NEAR`; else the next staler one; else None."""
    near = min(curves, key=lambda curve: (abs(log(_ratio(curve, delay))), abs(curve.delay - delay)))
    if 1 / NEAR <= _ratio(near, delay) <= NEAR:
        return near
    return min((curve for curve in curves if curve.delay > delay), key=lambda curve: curve.delay, default=None)


def _ratio(curve: Curve, delay: float) -> float:
    return max(curve.delay, 1.0) / max(delay, 1.0)


def lines(predictions: Sequence[Prediction], found: Sequence[Curve], hours: Sequence[float]) -> list[Line]:
    """Every prediction with every estimator of the runs."""
    names = dict.fromkeys(curve.estimator for curve in found)
    by_name = {name: [curve for curve in found if curve.estimator == name] for name in names}
    return [_line(name, by_name[name], prediction, hours) for name in names for prediction in predictions]


def _line(name: str, known: Sequence[Curve], prediction: Prediction, hours: Sequence[float]) -> Line:
    curve = looked_up(known, prediction.delay_mean)
    at: dict[float, Accuracy | None] = dict.fromkeys(hours)
    for hour in hours:
        updates = hour * prediction.updates_per_hour
        if curve is not None and updates <= curve.updates * (1 + 1e-9):
            at[hour] = curve.accuracy(updates)
    staler = curve is not None and _ratio(curve, prediction.delay_mean) > NEAR
    return Line(prediction, name, None if curve is None else curve.delay, staler, at)


def default_hours(predictions: Sequence[Prediction], found: Sequence[Curve]) -> list[float]:
    """A quarter, a half and all of the hours in which the fastest operation does the runs' updates."""
    fastest = max(prediction.updates_per_hour for prediction in predictions)
    whole = min(curve.updates for curve in found) / fastest
    return [whole / 4, whole / 2, whole]


def read_runs(paths: Sequence[str], where: Mapping[str, Sequence[str]]) -> list[Outcome]:
    """The finished runs below some folders that have these settings, each once. Raises UserError."""
    found = {run.run_id: run for path in paths for run in load_outcomes(Path(path)).runs}
    return select(list(found.values()), where)
