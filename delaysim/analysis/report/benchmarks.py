"""What `delaysim evaluate` found of these runs: the three averages over sets side by side."""

from collections.abc import Mapping, Sequence

import numpy as np

from delaysim.analysis.grid import Cell
from delaysim.analysis.outcomes import Outcome
from delaysim.analysis.report.blocks import Section, Table
from delaysim.analysis.report.study import Study
from delaysim.analysis.report.words import interval, number, ranges
from delaysim.analysis.stats import SideBySide, over_sets

Asked = tuple[tuple[str, object], ...]
"""How sets were asked: evaluations are averaged where it is the same."""


def benchmark_section(study: Study, evaluations: Sequence[Outcome]) -> Section | None:
    """One line per cell that was evaluated, and per way of asking."""
    found: dict[Asked, dict[str, Outcome]] = {}
    for one in evaluations:
        asked = tuple((key, value) for key, value in one.settings.items() if key.startswith("asked."))
        found.setdefault(asked, {})[one.run_id] = one
    rows = [
        (study.name(level), study.place(part, delay), *_row(asked, seeds))
        for part, delay, level, cell in study.cells()
        for asked, by_run in found.items()
        if (seeds := _evaluated(cell, by_run))
    ]
    if not rows:
        return None
    caption = (
        "avg@n on benchmark sets (delaysim evaluate), 95 % intervals over seeds and problems. Macro: each set alike, "
        "so that 40 problems weigh as much as 1,319; item-weighted: each problem alike; deduplicated: each cluster of "
        "problems once."
    )
    head = (study.by, "cell", "sets", "seeds", "problems", "macro", "item-weighted", "deduplicated", "greedy")
    return Section("benchmarks", "Benchmarks", _title(rows), [Table(caption, head, tuple(rows), left=3)])


def _title(rows: Sequence[tuple[str, ...]]) -> str:
    best = max(rows, key=lambda row: float(row[6].split()[0]))
    return f"On benchmarks {best[0]} at {best[1]} has the highest item-weighted average, {best[6]}; macro {best[5]}"


def _evaluated(cell: Cell, by_run: Mapping[str, Outcome]) -> dict[int, Outcome]:
    return {seed: by_run[cell.runs[seed].run_id] for seed in cell.seeds if cell.runs[seed].run_id in by_run}


def _row(asked: Asked, seeds: Mapping[int, Outcome]) -> tuple[str, ...]:
    first = next(iter(seeds.values()))
    means = _side_by_side(list(seeds.values()))
    return (
        str(dict(asked)["asked.sets"]), ranges(seeds), f"{len(first.problems):,}", interval(means.macro),
        interval(means.item_weighted), interval(means.deduplicated),
        number(float(np.mean([one.greedy[-1] for one in seeds.values()]))),
    )  # fmt: skip


def _side_by_side(evaluations: Sequence[Outcome]) -> SideBySide:
    """Raises ValueError for a set of one cluster: its share of the error is unknown."""
    first = evaluations[0]
    sets, clusters = np.array(first.sets), np.array(first.clusters)
    scores = np.stack([one.scores for one in evaluations])
    names = dict.fromkeys(first.sets)
    tables = {name: scores[:, sets == name] for name in names}
    return over_sets(tables, {name: list(clusters[sets == name]) for name in names})
