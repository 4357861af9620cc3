"""What the rows of `delaysim evaluate` add up to: one line per set, and the means over sets. No torch."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from delaysim.accuracy import half_width
from delaysim.metrics import (
    Mean,
    Problem,
    Row,
    deduplicated,
    item_weighted,
    macro,
    majority_at,
    pass_at_k,
    problems,
    set_mean,
)

MEANS = {"macro": macro, "item_weighted": item_weighted, "deduplicated": deduplicated}
"""Over sets: each alike; each problem alike; each cluster of problems once, wherever it stands."""


def scorecard(rows: Iterable[Row]) -> dict[str, Any]:
    """Every number of an evaluation, from its rows alone: `n`, `sets` (by name) and `means` (by kind)."""
    by_set: dict[str, list[Problem]] = {}
    for problem in problems(rows):
        by_set.setdefault(problem.set, []).append(problem)
    n = min((problem.samples for found in by_set.values() for problem in found), default=0)
    return {
        "n": n,
        "sets": {name: _set(found, n) for name, found in by_set.items()},
        "means": {name: _over_sets(mean, list(by_set.values()), n) for name, mean in MEANS.items()},
    }


def _set(found: Sequence[Problem], n: int) -> dict[str, Any]:
    share = partial(_share, found)
    return {
        "problems": len(found),
        **_interval(set_mean(found)),
        "greedy": share("greedy"),
        "majority": share("majority") if n else None,
        "pass_at_k": {k: _mean([pass_at_k(p.samples, p.correct, k) for p in found]) for k in _ks(n)},
        "majority_at_k": {k: _mean([majority_at(p.classes, p.scores, k) for p in found]) for k in _ks(n)},
        "truncated": share("truncated"),
        "unanswered": share("unanswered"),
        "length_mean": share("length"),
        "ungraded": sum(problem.ungraded for problem in found),
    }


def _over_sets(mean: Any, sets: Sequence[Sequence[Problem]], n: int) -> dict[str, Any]:
    return {
        "problems": sum(map(len, sets)),
        **_interval(mean(sets)),
        "greedy": mean(sets, "greedy").mean,
        "majority": mean(sets, "majority").mean if n else None,
    }


def _interval(mean: Mean) -> dict[str, Any]:
    values = asdict(mean)
    return {"average": values.pop("mean"), **values, "half_width": half_width(mean.se, mean.clusters)}


def _share(found: Sequence[Problem], of: str) -> float:
    return _mean([getattr(problem, of) for problem in found])


def _mean(values: Sequence[float]) -> float:
    return float(sum(values)) / len(values)


def _ks(n: int) -> list[int]:
    """1, 2, 4, ... up to n, and n itself."""
    return sorted({2**i for i in range(n.bit_length()) if 2**i <= n} | ({n} if n else set()))
