"""How much delay each estimator affords: the largest at which accuracy is not lost by more than a tolerance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delaysim.analysis.grid import Level, Stratum, ordered, setting, spelled
from delaysim.analysis.outcomes import TIMED, Outcome
from delaysim.analysis.stats import Estimate, crossed
from delaysim.errors import UserError


@dataclass(frozen=True)
class Step:
    """One delay of the grid."""

    delay: float
    accuracy: float
    loss: Estimate
    """acc(delay) - acc(0), paired by seed and problem."""
    affordable: bool
    """Whether its lower bound lies above minus the tolerance, here and at every smaller delay."""
    seeds: tuple[int, ...]
    collapsed: int
    """Runs of the chosen settings."""
    chosen: Mapping[int, Any]
    """By seed, the value of the chosen setting, best on the other seeds; empty where there was nothing to choose."""
    time: float
    """Simulated time of an update."""
    time_ratio: float | None
    """The same over that without delay; None where it does not compare."""


@dataclass(frozen=True)
class Budget:
    """What one level affords."""

    level: Level
    at: Mapping[str, Any]
    steps: tuple[Step, ...]
    largest: float | None
    """0 = no delay of the grid; None where one seed says nothing."""

    @property
    def known(self) -> bool:
        """Whether there are seeds enough to say."""
        return all(step.loss.seed_variance for step in self.steps)


def budgets(
    strata: Sequence[Stratum], over: str, choose: str | None, tolerance: float, confidence: float
) -> list[Budget]:
    """One budget per level and combination of what is held besides `over` and `choose`.

    Delays are tried from the smallest on and the first that fails ends it, so that no correction for their number is
    needed (fixed-sequence testing). Raises UserError where a level has no run without delay.
    """
    grids: dict[tuple[Level, tuple[tuple[str, Any], ...]], dict[Any, dict[Any, Mapping[int, Outcome]]]] = {}
    for stratum in strata:
        held = tuple((key, value) for key, value in stratum.at.items() if key not in (over, choose))
        for level, cell in stratum.cells.items():
            by_delay = grids.setdefault((level, held), {})
            by_delay.setdefault(stratum.at[over], {})[stratum.at.get(choose) if choose else None] = cell.runs
    return [
        _budget(level, dict(held), {d: by_delay[d] for d in sorted(by_delay)}, over, tolerance, confidence)
        for (level, held), by_delay in sorted(grids.items(), key=lambda item: ordered(item[0][0]))
    ]


def _budget(
    level: Level, at: Mapping[str, Any], by_delay: Mapping[Any, Any], over: str, tolerance: float, confidence: float
) -> Budget:
    if 0 not in by_delay:
        least = spelled(next(iter(by_delay)))
        name = " ".join([spelled(level), *(setting(key, value) for key, value in at.items())])
        raise UserError(f"{name} has no run at {over}=0 (smallest: {least}): a budget is paired with it; add {over}=0")
    steps: list[Step] = []
    best = {delay: _choice(by_value) for delay, by_value in by_delay.items()}
    for delay in by_delay:
        before = all(step.affordable for step in steps)
        steps.append(_step(delay, best[delay], best[0], before, tolerance, confidence))
    afforded = [step.delay for step in steps if step.affordable]
    return Budget(level, at, tuple(steps), max(afforded, default=None))


Chosen = Mapping[int, tuple[Any, Outcome]]
"""By seed: the chosen value, and the run with it."""


def _choice(by_value: Mapping[Any, Mapping[int, Outcome]]) -> Chosen:
    """For every seed that all values share, the value that is best on average over the other seeds."""
    seeds = set.intersection(*(set(runs) for runs in by_value.values()))
    if len(by_value) == 1:
        (runs,) = by_value.values()
        return {seed: (None, runs[seed]) for seed in sorted(seeds)}
    if len(seeds) < 2:
        raise UserError(
            f"to choose among {', '.join(map(spelled, by_value))} on other seeds than those that judge takes two seeds "
            "or more that all of them have"
        )
    return {seed: _best(by_value, seed, seeds - {seed}) for seed in sorted(seeds)}


def _best(by_value: Mapping[Any, Mapping[int, Outcome]], seed: int, others: set[int]) -> tuple[Any, Outcome]:
    mean = {value: np.mean([runs[other].final for other in others]) for value, runs in by_value.items()}
    value = max(mean, key=lambda candidate: mean[candidate])
    return value, by_value[value][seed]


def _step(delay: float, here: Chosen, without: Chosen, before: bool, tolerance: float, confidence: float) -> Step:
    seeds = tuple(sorted(here.keys() & without.keys()))
    if not seeds:
        raise UserError(f"no seed has run both with a delay of {spelled(delay)} and without: nothing is paired")
    runs, references = ([chosen[seed][1] for seed in seeds] for chosen in (here, without))
    loss = crossed(_scores(runs) - _scores(references), confidence=confidence)
    enough = delay == 0 or loss.low > -tolerance
    return Step(
        delay, float(_scores(runs).mean()), loss, before and enough and loss.seed_variance, seeds,
        sum(run.collapsed for run in runs),
        {seed: value for seed, (value, _) in here.items() if value is not None},
        _time(runs), _time(runs) / _time(references) if _one_clock((*runs, *references)) else None,
    )  # fmt: skip


def _scores(runs: Sequence[Outcome]) -> NDArray[np.float64]:
    return np.stack([run.scores for run in runs])


def _time(runs: Sequence[Outcome]) -> float:
    return float(np.mean([run.time_per_update for run in runs]))


def _one_clock(runs: Sequence[Outcome]) -> bool:
    """Whether costs and the coupling to lengths are alike."""
    return len({tuple(run.settings.get(key) for key in TIMED) for run in runs}) == 1
