"""From a question to predictions: the grid on the clock, the front, the best split of each operation, the answer."""

from collections.abc import Sequence
from dataclasses import dataclass

from delaysim.pareto import front
from delaysim.predict.bounds import bound, learner_bound, rollout_bound
from delaysim.predict.inputs import Question
from delaysim.predict.operation import COLOCATED, grid
from delaysim.predict.simulate import Prediction, predict

ENOUGH = 0.95
"""Of the fastest speed: what makes so much with less delay is the answer."""
CLOSE = 0.05
"""A cell this near to a bound is said to be held by it."""


@dataclass(frozen=True)
class Choice:
    """A prediction among the others."""

    prediction: Prediction
    on_front: bool
    """No other of the grid is as fast and as fresh, in three digits of speed and two of delay."""
    held_by: str
    """What keeps it from being faster."""
    bound: float
    """Least seconds per update by closed form."""


def answer(asked: Question, seed: int = 0) -> list[Choice]:
    """Every operation on every split, from the clock."""
    found = [predict(cell, asked.costs, seed) for cell in grid(asked.gpus, asked.trainer_gpus, asked.look_aheads)]
    best = front([(rounded(one.updates_per_hour, 3), rounded(one.delay_mean, 2)) for one in found])
    return [
        Choice(one, marked, held_by(one, asked), _bound(one, asked)) for one, marked in zip(found, best, strict=True)
    ]


def _bound(one: Prediction, asked: Question) -> float:
    return bound(one.cell, asked.costs, one.mean_length)


def held_by(one: Prediction, asked: Question) -> str:
    """In turn: generation and training add up. Else the learner, the rollout GPUs, or too little in generation.

    `look-ahead`: neither is at its limit, since eta admits too few responses to fill the slots or bridge their tails.
    """
    if one.cell.operation.look_ahead == 0:
        return "taking turns"
    limits = {
        "trainer": learner_bound(one.cell, asked.costs),
        "rollout": rollout_bound(one.cell, asked.costs, one.mean_length),
    }
    name = max(limits, key=limits.__getitem__)
    return name if one.seconds <= (1 + CLOSE) * limits[name] else "look-ahead"


def best_splits(choices: Sequence[Choice]) -> list[Choice]:
    """The fastest split of every operation, in the order of the grid."""
    names = dict.fromkeys(choice.prediction.cell.operation.name for choice in choices)
    of = {name: [c for c in choices if c.prediction.cell.operation.name == name] for name in names}
    return [max(of[name], key=lambda choice: choice.prediction.updates_per_hour) for name in names]


def sentence(choices: Sequence[Choice]) -> str:
    """The answer: the freshest of the fast ones, what it gains over taking turns, and what it pays in delay."""
    found = [choice.prediction for choice in choices]
    fastest = max(one.updates_per_hour for one in found)
    best = min((one for one in found if one.updates_per_hour >= ENOUGH * fastest), key=lambda one: one.delay_mean)
    fresh = max((one for one in found if one.cell.operation.look_ahead == 0), key=lambda one: one.updates_per_hour)
    where = "all GPUs in turn"
    if fresh.cell.operation != COLOCATED:
        where = f"{fresh.cell.operation.name} {fresh.cell.split}"
    if best == fresh:
        return f"No operation is 5 % faster than {where}: {short(fresh.updates_per_hour)} updates/h without delay"
    return (
        f"{best.cell.operation.name} on {best.cell.split} makes {short(best.updates_per_hour)} updates/h, "
        f"{best.updates_per_hour / fresh.updates_per_hour:.2f} times {where}, at a mean delay of {best.delay_mean:.3g}"
        + ("" if best.updates_per_hour == fastest else "; nothing is 5 % faster")
    )


def short(value: float) -> str:
    """Four significant digits, with separators from a thousand on."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def rounded(value: float, digits: int) -> float:
    """To so many significant digits: what is alike but for chance compares as equal."""
    return float(f"{value:.{digits}g}")
