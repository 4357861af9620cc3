"""Accuracies from evaluation rows: avg@n, unbiased pass@k and maj@k, clustered errors, macro and item-weighted means.

One row per (set, problem, response); response 0 is greedy. Pure functions; no torch.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb, expm1, fsum, log1p, nan, sqrt
from typing import Any

from delaysim.tasks.base import UNGRADED

Row = Mapping[str, Any]


def pass_at_k(n: int, correct: int, k: int) -> float:
    """Chance that one of k responses is right, unbiased from n of which `correct` are (Chen et al. 2021, eq. 1).

    1 - C(n-c, k)/C(n, k), as a sum of logarithms so that nothing overflows. Raises ValueError for k > n.
    """
    if not 1 <= k <= n or not 0 <= correct <= n:
        raise ValueError(f"pass@{k} of {correct} in {n}: needs 1 <= k <= n and 0 <= c <= n")
    if n - correct < k:
        return 1.0
    return -expm1(sum(log1p(-k / i) for i in range(n - correct + 1, n + 1)))


def majority(classes: Sequence[int | None], scores: Sequence[float]) -> float:
    """Score of the most frequent answer; classes that tie share the credit, responses without an answer do not vote."""
    votes = Counter(c for c in classes if c is not None)
    if not votes:
        return 0.0
    most = max(votes.values())
    tied = [c for c, count in votes.items() if count == most]
    return _mean([_mean([s for c, s in zip(classes, scores, strict=True) if c == t]) for t in tied])


def majority_at(classes: Sequence[int | None], scores: Sequence[float], m: int) -> float:
    """`majority` of m responses, unbiased from n: its mean over all subsets of m of them.

    Given how many of a class a subset holds, any of its members are as likely: their scores enter by their mean alone.
    Raises ValueError for m > n.
    """
    if not 1 <= m <= len(scores):
        raise ValueError(f"maj@{m} of {len(scores)}: needs 1 <= m <= n")
    members: defaultdict[int | None, list[float]] = defaultdict(list)
    for label, score in zip(classes, scores, strict=True):
        members[label].append(score)
    silent = len(members.pop(None, ()))
    sizes = {label: len(of) for label, of in members.items()}
    chances = {
        label: _share(size, tuple(sorted(other for key, other in sizes.items() if key != label)), silent, m)
        for label, size in sizes.items()
        if any(members[label])
    }
    return fsum(chance * _mean(members[label]) for label, chance in chances.items())


@lru_cache(maxsize=1 << 16)
def _share(size: int, others: tuple[int, ...], silent: int, m: int) -> float:
    """Mean credit of one class of `size` over subsets of m: 1/t where it is one of the t most frequent, else 0."""
    total = Fraction(0)
    for j in range(1, min(size, m) + 1):
        rivals = [other for other in others if other >= j]
        rest = silent + sum(others) - sum(rivals)  # whoever cannot reach j votes
        for (drawn, tied), ways in _rivalry(rivals, j, m - j).items():
            total += Fraction(comb(size, j) * ways * comb(rest, m - j - drawn), tied)
    return float(total / comb(size + sum(others) + silent, m))


def _rivalry(rivals: Sequence[int], j: int, room: int) -> dict[tuple[int, int], int]:
    """In how many ways rivals with at most j votes each fill so many of `room` places, by that and by who has j."""
    ways = {(0, 1): 1}
    for rival in rivals:
        after: defaultdict[tuple[int, int], int] = defaultdict(int)
        for (drawn, tied), count in ways.items():
            for votes in range(min(j, room - drawn) + 1):
                after[drawn + votes, tied + (votes == j)] += count * comb(rival, votes)
        ways = after
    return ways


@dataclass(frozen=True)
class Problem:
    """One problem of one set, from its rows."""

    set: str
    cluster: str
    samples: int
    """n, sampled responses."""
    correct: int
    """c, right ones among them."""
    average: float
    """Mean score of the sampled responses; of the greedy one where none are sampled."""
    greedy: float
    majority: float
    truncated: float
    """Share of responses that reached the limit."""
    length: float
    """Mean [tokens]."""
    unanswered: float
    """Share of responses without an answer."""
    ungraded: int
    """Responses whose grading timed out or lost its worker."""
    classes: tuple[int | None, ...] = ()
    """Of each sampled response, None without an answer."""
    scores: tuple[float, ...] = ()
    """Of each sampled response."""


@dataclass(frozen=True)
class Mean:
    """A mean and its standard error, clustered."""

    mean: float
    se: float
    clusters: int


NO_ANSWER = ("no_answer", "truncated")


def problems(rows: Iterable[Row]) -> list[Problem]:
    """The problems of evaluation rows, in order of appearance."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row["set"], row["problem"]), []).append(row)
    return [_problem(of) for of in found.values()]


def _problem(rows: Sequence[Row]) -> Problem:
    sampled = [row for row in rows if not row["greedy"]]
    judged = sampled or rows
    scores = [float(row["score"]) for row in judged]
    return Problem(
        set=rows[0]["set"],
        cluster=rows[0]["cluster"],
        samples=len(sampled),
        correct=sum(row["score"] == 1 for row in sampled),
        average=_mean(scores),
        greedy=_mean([float(row["score"]) for row in rows if row["greedy"]]),
        majority=majority([row["class"] for row in judged], scores),
        truncated=_mean([float(row["truncated"]) for row in judged]),
        length=_mean([row["n_tokens"] for row in judged]),
        unanswered=_mean([float(row["status"] in NO_ANSWER) for row in judged]),
        ungraded=sum(row["status"] in UNGRADED for row in rows),
        classes=tuple(row["class"] for row in sampled),
        scores=tuple(float(row["score"]) for row in sampled),
    )


def set_mean(found: Sequence[Problem], of: str = "average") -> Mean:
    """Mean over the problems of one set; problems of one cluster count as one draw (Miller 2024, sec. 2.2).

    SE^2 = K/(K-1) * sum over clusters of (sum of deviations)^2 / Q^2 with K clusters and Q problems; with every problem
    a cluster of its own it is sd^2/Q. NaN with fewer than two clusters.
    """
    return _combined([found], [1.0], of)


def macro(sets: Sequence[Sequence[Problem]], of: str = "average") -> Mean:
    """Mean of the sets' means. A cluster that stands in two sets brings their covariance into the error."""
    return _combined(sets, [1 / len(sets)] * len(sets), of)


def item_weighted(sets: Sequence[Sequence[Problem]], of: str = "average") -> Mean:
    """Mean over all problems, sets kept as strata."""
    total = sum(map(len, sets))
    return _combined(sets, [len(found) / total for found in sets], of)


def deduplicated(sets: Sequence[Sequence[Problem]], of: str = "average") -> Mean:
    """Mean over clusters, each counted once wherever it stands; strata are the sets it stands in."""
    by_cluster: dict[str, list[Problem]] = {}
    for problem in (problem for found in sets for problem in found):
        by_cluster.setdefault(problem.cluster, []).append(problem)
    strata: dict[frozenset[str], list[float]] = {}
    for members in by_cluster.values():
        value = _mean([getattr(p, of) for p in members])
        strata.setdefault(frozenset(p.set for p in members), []).append(value)
    total = len(by_cluster)
    mean = sum(map(sum, strata.values())) / total
    variance = sum(len(values) ** 2 * _variance(values) / len(values) for values in strata.values()) / total**2
    return Mean(mean, sqrt(variance), total)


def _combined(sets: Sequence[Sequence[Problem]], weights: Sequence[float], of: str) -> Mean:
    """Sum of weighted set means; deviations of one cluster are added over sets before they are squared."""
    means: list[float] = []
    per_cluster: defaultdict[str, float] = defaultdict(float)
    for found, weight in zip(sets, weights, strict=True):
        values = [float(getattr(problem, of)) for problem in found]
        centre, count = _mean(values), len({problem.cluster for problem in found})
        means.append(weight * centre)
        scale = weight / len(found) * sqrt(count / (count - 1)) if count > 1 else nan
        for problem, value in zip(found, values, strict=True):
            per_cluster[problem.cluster] += scale * (value - centre)
    return Mean(fsum(means), sqrt(sum(value**2 for value in per_cluster.values())), len(per_cluster))


def _variance(values: Sequence[float]) -> float:
    centre = _mean(values)
    return sum((value - centre) ** 2 for value in values) / max(1, len(values) - 1)


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)
