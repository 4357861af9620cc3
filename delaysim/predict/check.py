"""How well costs calibrated on one published row of a system predict its other rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import erf, log, sqrt

from scipy.optimize import brentq

from delaysim.clock.lengths import Lognormal
from delaysim.predict.costs import Costs, Points, Rollout, Trainer, Work
from delaysim.predict.operation import Cell
from delaysim.predict.published import TRAINERS, Step, TrainerRow
from delaysim.predict.simulate import Prediction, predict

SHARES = (0.5, 0.6, 0.7)
"""Share of an on-policy step that is generation: no row says it. The middle one is predicted with, all are shown."""
HALF = 64.0
"""Responses at once on a GPU at which it makes half its highest tokens/s: no row says that either."""
SIGMA = 0.5
"""Of the lognormal lengths; their mean after the cap is the published one."""
SLOTS = 512
"""Responses at once on a GPU at most; more than any row needs."""


@dataclass(frozen=True)
class Check:
    """A row as published and as predicted."""

    step: Step
    calibrates: bool
    predicted: float
    """At the middle of `SHARES`."""
    low: float
    """Least over `SHARES`."""
    high: float

    @property
    def error(self) -> float:
        """Relative, of the prediction."""
        return self.predicted / self.step.seconds - 1


def checks(steps: Sequence[Step]) -> Iterator[Check]:
    """Each row of a table beside its prediction from the first row of its model."""
    for step in steps:
        base = next(row for row in steps if row.work == step.work)
        found = [predicted(step, base, share) for share in SHARES]
        yield Check(step, step is base, found[len(SHARES) // 2], min(found), max(found))


def predicted(step: Step, base: Step, share: float) -> float:
    """Seconds of a step, all costs taken from one on-policy row of which `share` is generation."""
    return _run(step.cell, calibrated(base, share)).seconds


def calibrated(base: Step, share: float) -> Costs:
    """Costs that give an on-policy row its seconds: training takes what generation leaves, and scales linearly.

    At twice the speed the same responses take half the time, so one run at any speed tells the right one.
    """
    slow = _costs(base, 1.0, 0.0)
    seconds = _run(base.cell, slow).seconds
    return _costs(base, seconds / (share * base.seconds), (1 - share) * base.seconds)


@cache
def _run(cell: Cell, costs: Costs) -> Prediction:
    return predict(cell, costs)


def _costs(base: Step, peak: float, train: float) -> Costs:
    work = base.work
    lengths = Lognormal(uncapped_mean(work.mean_length, SIGMA, work.cap), SIGMA, 0.5, work.cap)
    return Costs(
        Work(work.groups, work.group_size, lengths),
        Rollout(saturating(peak, HALF, SLOTS), SLOTS),
        Trainer(((float(base.trainer), max(train, 1e-6)),)),
    )


def saturating(peak: float, half: float, slots: int) -> Points:
    """peak*c/(c + half) at c = 1, 2, 4, ... slots: a decoding step costs a constant and a part for each response."""
    counts = [float(2**k) for k in range(slots.bit_length()) if 2**k <= slots]
    return tuple((count, peak * count / (count + half)) for count in counts)


def capped_mean(mean: float, sigma: float, cap: float) -> float:
    """E[min(X, cap)] of a lognormal X with this mean and standard deviation of log X."""
    z = (log(cap / mean) + sigma**2 / 2) / sigma
    return mean * _normal(z - sigma) + cap * (1 - _normal(z))


def uncapped_mean(capped: float, sigma: float, cap: float) -> float:
    """The mean before the cap that leaves this one after it."""
    return float(brentq(lambda mean: capped_mean(mean, sigma, cap) - capped, capped, 100 * cap))


def _normal(z: float) -> float:
    return (1 + erf(z / sqrt(2))) / 2


@dataclass(frozen=True)
class TrainerCheck:
    """A trainer's row as published and as predicted."""

    row: TrainerRow
    calibrates: bool
    predicted: float

    @property
    def error(self) -> float:
        """Relative, of the prediction."""
        return self.predicted / self.row.seconds - 1


def trainer_checks() -> Iterator[TrainerCheck]:
    """Each row beside what its first row says at constant tokens/s per GPU, as `--trainer-csv` takes it."""
    for base, *others in TRAINERS:
        yield TrainerCheck(base, True, base.seconds)
        for row in others:
            seconds = base.seconds * (row.tokens / row.gpus) / (base.tokens / base.gpus)
            yield TrainerCheck(row, False, seconds)
