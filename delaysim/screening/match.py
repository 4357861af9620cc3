"""Thresholds of equal strength: equal eps is not equal strength, so what a method does to the data is matched."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, log

from delaysim.estimators.base import GroupBatch
from delaysim.estimators.interface import Estimator
from delaysim.screening.tally import Tally

STRENGTHS = {"intervention": "intervention", "removed_mass": "removed", "second_moment": "second_moment"}
"""What can be matched, and the column that measures it."""
LOWEST, HIGHEST, STEPS = 1e-6, 1e4, 60
TOLERANCE = 0.01
LIMIT = 4_000_000
"""Tokens that matching looks at; more are thinned evenly."""


@dataclass(frozen=True)
class Matched:
    """An estimator at the threshold found."""

    estimator: Estimator
    strength: float
    reached: bool
    """False = no threshold gives the strength, and this is the nearest; or there is no threshold to set."""


def strength(estimator: Estimator, batches: Iterable[GroupBatch], kind: str) -> float:
    """How strongly an estimator acts on these mini-batches; `kind` is one of STRENGTHS."""
    tally = Tally(estimator)
    for batch in batches:
        tally.add(batch)
    return float(tally.rows()[0][STRENGTHS[kind]])


def match(
    estimator: Estimator, target: float, batches: list[GroupBatch], kind: str, tolerance: float = 0.01
) -> Matched:
    """The estimator with the threshold at which its strength is `target`, by bisection on the logarithm of eps.

    Strength falls (intervention, removed mass) or rises (second moment) with eps. Within TOLERANCE of the target,
    relative, counts as reached; a rate that jumps over it does not.
    """
    if estimator.eps is None:
        return Matched(estimator, strength(estimator, batches, kind), False)
    low, high = log(LOWEST), log(HIGHEST)
    rising = strength(estimator.at(HIGHEST), batches, kind) > strength(estimator.at(LOWEST), batches, kind)
    best = min((_at(estimator, x, batches, kind) for x in (low, high)), key=lambda found: abs(found.strength - target))
    for _ in range(STEPS):
        middle = (low + high) / 2
        found = _at(estimator, middle, batches, kind)
        best = min(best, found, key=lambda m: abs(m.strength - target))
        if abs(found.strength - target) <= 1e-4 * abs(target):
            break
        low, high = (middle, high) if (found.strength < target) == rising else (low, middle)
    return Matched(best.estimator, best.strength, abs(best.strength - target) <= TOLERANCE * abs(target))


def _at(estimator: Estimator, log_eps: float, batches: list[GroupBatch], kind: str) -> Matched:
    chosen = estimator.at(exp(log_eps))
    return Matched(chosen, strength(chosen, batches, kind), True)


def thinned(batches: Iterable[GroupBatch]) -> list[GroupBatch]:
    """An even selection that fits LIMIT: every batch, every second, every fourth ..."""
    kept: list[GroupBatch] = []
    stride, size = 1, 0
    for n, batch in enumerate(batches):
        if n % stride:
            continue
        kept.append(batch)
        size += batch.mask.numel()
        while size > LIMIT and len(kept) > 1:
            kept, stride = kept[::2], stride * 2
            size = sum(b.mask.numel() for b in kept)
    return kept
