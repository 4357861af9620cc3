"""Comparisons as tables for people."""

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from delaysim.analysis.compare import ONE_SEED, OPEN, SAME, Contrast, Rule, side_by_side
from delaysim.analysis.grid import Cell, Stratum, ordered, spelled
from delaysim.analysis.outcomes import Outcome
from delaysim.analysis.report.words import count
from delaysim.analysis.stats import Estimate, crossed

SIDES = (("item-weighted: each problem alike", False), ("macro: each set alike", True))
MANY = 100
"""More seeds than anyone runs are not suggested."""
CLOSE = 0.0005
"""Differences re-read on another axis are shown where they differ by so much."""


def accuracies(by: str, strata: Sequence[Stratum], rule: Rule) -> list[Table]:
    """Mean and interval of every cell, over several sets both ways; collapsed runs are counted and stay in the mean."""
    if _first(strata).sets:
        return [_means(by, strata, rule, title, macro) for title, macro in SIDES]
    return [_means(by, strata, rule, "updates" if rule.less_is_better else "accuracy", None)]


def _first(strata: Sequence[Stratum]) -> Outcome:
    return next(iter(next(iter(strata[0].cells.values())).runs.values()))


def _means(by: str, strata: Sequence[Stratum], rule: Rule, title: str, macro: bool | None) -> Table:
    table = _table(f"\n{title}")
    table.add_column(by)
    for stratum in strata:
        table.add_column(_at(stratum.at) or "all", justify="right")
    for level in sorted({level for stratum in strata for level in stratum.cells}, key=ordered):
        table.add_row(spelled(level), *(_cell(stratum.cells.get(level), rule, macro) for stratum in strata))
    return table


def _cell(cell: Cell | None, rule: Rule, macro: bool | None) -> str:
    if cell is None:
        return "-"
    table = cell.table(rule.endpoint)
    if macro is None:
        mean = crossed(table)
    else:
        sides = side_by_side(table, next(iter(cell.runs.values())))
        mean = sides.macro if macro else sides.item_weighted
    text = interval(mean.at(1 - rule.alpha), "", rule.digits)
    return f"{text} ({cell.collapsed} of {len(cell.runs)} collapsed)" if cell.collapsed else text


def contrasts(rows: Sequence[Contrast], rule: Rule, title: str) -> Table:
    """One line per difference."""
    table = _table(f"{title}, {100 * (1 - rule.alpha):.3g} % intervals over {rule.random}")
    axes = [axis for axis in rows[0].matched if any(_differs(row, axis) for row in rows)]
    for head in (*([" ".join(rows[0].at)] if rows[0].at else []), "difference"):
        table.add_column(head)
    macro = ["macro"] if rows[0].macro else []
    for head in ("", *macro, *(f"at equal {axis}" for axis in axes), "p (Holm)", "seeds"):
        table.add_column(head, justify="right")
    table.add_column("verdict")
    for row in rows:
        held = [" ".join(spelled(value) for value in row.at.values())] if row.at else []
        names = f"{spelled(row.a)} - {spelled(row.b)}"
        again = [_matched(row.matched[axis]) for axis in axes]
        table.add_row(
            *held,
            names,
            interval(row.difference, digits=rule.digits),
            *again,
            _p(row.p_holm),
            str(len(row.seeds)),
            _verdict(row),
        )
    return table


def footnotes(rows: Sequence[Contrast], rule: Rule) -> list[str]:
    """How many comparisons the p-values are corrected for, and what collapsed."""
    tested = sum(row.verdict not in (ONE_SEED, SAME) for row in rows)
    lines = (
        [f"p: two-sided, corrected over {tested} comparisons; a verdict needs p < {rule.alpha:.4g}"] if tested else []
    )
    if rule.margin is not None:
        lines.append(f"equivalent: the interval lies within ±{rule.margin:g}")
    return lines


def interval(estimate: Estimate, sign: str = "+", digits: int = 3) -> str:
    """A mean and half its interval; without one where there is none."""
    half = estimate.half_width
    return f"{estimate.mean:{sign}.{digits}f}" + (f" ±{half:.{digits}f}" if half == half else "")


def _matched(estimate: Estimate | None) -> str:
    return "clocks differ" if estimate is None else interval(estimate)


def _differs(row: Contrast, axis: str) -> bool:
    again = row.matched[axis]
    return again is None or abs(again.mean - row.difference.mean) >= CLOSE


def _verdict(row: Contrast) -> str:
    if row.verdict != OPEN or row.more_seeds is None or row.more_seeds > MANY:
        return row.verdict
    return f"{OPEN}; about {count(int(row.more_seeds), 'more seed')} would tell"


def _p(value: float) -> str:
    return "-" if value != value else "<.001" if value < 0.001 else f"{value:.3f}"


def _at(at: Any) -> str:
    return " ".join(f"{key}={spelled(value)}" for key, value in at.items())


def _table(title: str) -> Table:
    return Table(box=None, pad_edge=False, title=title, title_justify="left")
