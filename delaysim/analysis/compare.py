"""Who beats whom, by how much: paired differences over shared seeds and problems, corrected for their number."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import inf, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delaysim.analysis.endpoints import Endpoint, final
from delaysim.analysis.grid import Cell, Level, Stratum
from delaysim.analysis.outcomes import LOOKS, TIMED, Outcome
from delaysim.analysis.stats import (
    Estimate,
    SideBySide,
    auc,
    crossed,
    equivalent,
    holm,
    iqm,
    over_sets,
    probability_of_improvement,
    seeds_needed,
)
from delaysim.errors import UserError

Table = NDArray[np.float64]
"""(seeds, problems)."""
ONE_SEED, OPEN, ALIKE, SAME = "one seed: no ranking", "not separable", "equivalent", "identical"


@dataclass(frozen=True)
class Rule:
    """How a difference becomes a verdict."""

    alpha: float = 0.05
    """Chance of any false verdict in a table."""
    margin: float | None = None
    """Differences within it count as none; None = no verdict of equivalence."""
    endpoint: Endpoint = final
    less_is_better: bool = False
    """Whether the smaller value wins, as of updates until a level."""

    @property
    def digits(self) -> int:
        """Of a value in print: accuracies need three, updates one."""
        return 1 if self.less_is_better else 3

    @property
    def random(self) -> str:
        """What intervals are over."""
        return "seeds" if self.less_is_better else "seeds and problems"


@dataclass(frozen=True)
class Contrast:
    """One difference `a` minus `b`."""

    at: Mapping[str, Any]
    a: Level
    b: Level
    mean_a: float
    mean_b: float
    difference: Estimate
    seeds: tuple[int, ...]
    """Shared by both; others are left out."""
    collapsed_a: int
    collapsed_b: int
    iqm_a: float
    """Mean over the middle half of the seeds (Agarwal et al. 2021); `iqm_b` likewise."""
    iqm_b: float
    improvement: float
    """Chance that a seed of `a` has the larger value than a seed of `b`, ties half."""
    matched: Mapping[str, Estimate | None]
    """The same difference where both have done equally much on another axis; None where times do not compare."""
    macro: Estimate | None = None
    """Where the problems are of several sets: each set alike, while `difference` has each problem alike."""
    by_set: Mapping[str, Estimate] = field(default_factory=dict)
    p_holm: float = nan
    """Corrected over the table; NaN with one seed and for identical runs."""
    verdict: str = ONE_SEED
    """`LEVEL better`, `equivalent`, `identical`, `not separable`, or `one seed: no ranking`."""
    more_seeds: float | None = None
    """How many more would settle a difference of this size with 80 % power; inf = none would, more problems might."""


def compare(strata: Sequence[Stratum], rule: Rule, against: Level | None = None) -> list[Contrast]:
    """Every pair of levels in every stratum (each with `against` where given), Holm over all of them."""
    found = [
        _contrast(stratum.at, pair, [stratum.cells[level] for level in pair], rule.endpoint)
        for stratum in strata
        for pair in _pairs(stratum.cells, against)
    ]
    return _judged([contrast for contrast in found if contrast], rule)


def over_grid(strata: Sequence[Stratum], key: str, rule: Rule, against: Level | None = None) -> list[Contrast]:
    """The primary endpoint: for every pair the difference of areas under accuracy against `key`, Holm over the pairs.

    A level counts where it has every value of the key, with the seeds that it has at all of them.
    """
    x = [float(stratum.at[key]) for stratum in strata]
    at = {key: f"{x[0]:g} to {x[-1]:g}"}
    areas = {
        level: _areas([stratum.cells[level] for stratum in strata], x, rule.endpoint)
        for level in strata[0].cells
        if all(level in stratum.cells for stratum in strata)
    }
    collapsed = {level: sum(stratum.cells[level].collapsed for stratum in strata) for level in areas}
    found = []
    for a, b in _pairs(areas, against):
        seeds = tuple(sorted(areas[a].keys() & areas[b].keys()))
        if seeds:
            left, right = (np.stack([areas[level][seed] for seed in seeds]) for level in (a, b))
            contrast = _difference(at, (a, b), (left, right), seeds, (collapsed[a], collapsed[b]))
            found.append(_by_sets(contrast, left - right, strata[0].cells[a].runs[seeds[0]]))
    return _judged(found, rule)


def _areas(cells: Sequence[Cell], x: Sequence[float], endpoint: Endpoint) -> dict[int, NDArray[np.float64]]:
    """By seed that every cell has: (problems,)."""
    seeds = set.intersection(*(set(cell.runs) for cell in cells))
    return {seed: auc(np.stack([endpoint(cell.runs[seed]) for cell in cells], axis=-1), x) for seed in seeds}


def _pairs(levels: Mapping[Level, Any], against: Level | None) -> Iterator[tuple[Level, Level]]:
    if against is None:
        yield from combinations(levels, 2)
    elif against in levels:
        yield from ((level, against) for level in levels if level != against)


def _contrast(
    at: Mapping[str, Any], pair: tuple[Level, Level], cells: Sequence[Cell], endpoint: Endpoint
) -> Contrast | None:
    a, b = cells
    seeds = tuple(sorted(a.runs.keys() & b.runs.keys()))
    if not seeds:
        return None
    tables = a.table(endpoint, seeds), b.table(endpoint, seeds)
    found = _difference(at, pair, tables, seeds, (a.collapsed, b.collapsed))
    runs = [(a.runs[seed], b.runs[seed]) for seed in seeds]
    found = _by_sets(found, tables[0] - tables[1], runs[0][0])
    if found.by_set or endpoint is not final:
        return found
    return replace(found, matched={axis: _matched(axis, runs) for axis in runs[0][0].axes if axis != "updates"})


def _by_sets(contrast: Contrast, gap: Table, run: Outcome) -> Contrast:
    """The same with the problems' sets and clusters, where `run` has them."""
    if not run.sets:
        return contrast
    found = side_by_side(gap, run)
    return replace(contrast, difference=found.item_weighted, macro=found.macro, by_set=found.sets)


def side_by_side(table: Table, run: Outcome) -> SideBySide:
    """A (seeds, problems) table over the sets of `run`: they are strata, and the problems of each are drawn anew.

    Raises UserError for a set of one problem.
    """
    names, labels = np.array(run.sets), np.array(run.clusters)
    which = {name: names == name for name in dict.fromkeys(run.sets)}
    try:
        return over_sets(
            {name: table[:, of] for name, of in which.items()}, {name: labels[of] for name, of in which.items()}
        )
    except ValueError as error:
        raise UserError(str(error)) from None


def _difference(
    at: Mapping[str, Any],
    pair: tuple[Level, Level],
    tables: tuple[Table, Table],
    seeds: tuple[int, ...],
    collapsed: tuple[int, int],
) -> Contrast:
    left, right = tables
    a, b = left.mean(axis=1), right.mean(axis=1)
    return Contrast(
        at, *pair, float(a.mean()), float(b.mean()), crossed(left - right), seeds, *collapsed, float(iqm(a)),
        float(iqm(b)), float(probability_of_improvement(a, b)), matched={},
    )  # fmt: skip


def _matched(axis: str, runs: Sequence[tuple[Outcome, Outcome]]) -> Estimate | None:
    """The difference at the smaller of two totals; where both end alike, the difference at the end."""
    clocks = {tuple(run.settings.get(key) for key in TIMED) for pair in runs for run in pair}
    if axis == "sim_time" and len(clocks) > 1:
        return None
    return crossed(np.stack([_until(axis, one, other) - _until(axis, other, one) for one, other in runs]))


def _until(axis: str, run: Outcome, other: Outcome) -> NDArray[np.float64]:
    """A run's scores when it had done as much as another at each of its last evaluations; its own if it did less."""
    if run.total(axis) <= other.total(axis):
        return run.scores
    return np.mean([run.scores_at(axis, x) for x in other.axes[axis][1:][-LOOKS:]], axis=0)


def _judged(found: Sequence[Contrast], rule: Rule) -> list[Contrast]:
    """Runs that are the same by design, as all losses are at delay 0, are no test and weaken none of the others."""
    corrected = holm([nan if _same(contrast.difference) else contrast.difference.p for contrast in found])
    return [_judge(contrast, float(p), rule) for contrast, p in zip(found, corrected, strict=True)]


def _same(difference: Estimate) -> bool:
    return difference.mean == 0 and difference.se == 0


def _judge(contrast: Contrast, p: float, rule: Rule) -> Contrast:
    verdict = _verdict(contrast, p, rule)
    more = _more_seeds(contrast, p, rule) if verdict == OPEN else None
    return replace(_at(1 - rule.alpha, contrast), p_holm=p, verdict=verdict, more_seeds=more)


def _at(confidence: float, contrast: Contrast) -> Contrast:
    """All its intervals at one confidence."""
    return replace(
        contrast,
        difference=contrast.difference.at(confidence),
        macro=contrast.macro and contrast.macro.at(confidence),
        by_set={name: alone.at(confidence) for name, alone in contrast.by_set.items()},
        matched={axis: again and again.at(confidence) for axis, again in contrast.matched.items()},
    )


def _verdict(contrast: Contrast, p: float, rule: Rule) -> str:
    difference = contrast.difference
    if _same(difference):
        return SAME
    if not difference.seed_variance:
        return ONE_SEED
    if p < rule.alpha:
        return f"{contrast.a if (difference.mean > 0) != rule.less_is_better else contrast.b} better"
    alike = rule.margin is not None and equivalent(difference, rule.margin, rule.alpha / 2)
    return ALIKE if alike else OPEN


def _more_seeds(contrast: Contrast, p: float, rule: Rule) -> float:
    """Seeds to add, at the level that the correction leaves to this difference; those at hand were not enough."""
    difference = contrast.difference
    level = rule.alpha * difference.p / p if p > 0 else rule.alpha
    needed = seeds_needed(difference, alpha=level) if difference.mean else inf
    return max(1.0, needed - len(contrast.seeds))
