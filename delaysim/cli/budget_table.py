"""Budgets as text for people."""

from collections import Counter
from collections.abc import Sequence

from rich.table import Table

from delaysim.analysis.budget import Budget, Step
from delaysim.analysis.grid import spelled
from delaysim.cli.compare_tables import interval


def answer(budget: Budget, over: str) -> str:
    """One line: what a level affords, and what that buys."""
    name = "  " + " ".join([spelled(budget.level), *(f"{key}={spelled(value)}" for key, value in budget.at.items())])
    if not budget.known:
        return f"{name}: not known with one seed"
    last = next(step for step in budget.steps if step.delay == budget.largest)
    beyond = "" if budget.steps[-1].affordable else f"; not {over}={spelled(_next(budget).delay)}"
    if not last.delay:
        return f"{name}: {over}=0 only{beyond}"
    return f"{name}: {over}={spelled(last.delay)}{_buys(budget.steps[0], last)}{beyond or ', the largest tried'}"


def _next(budget: Budget) -> Step:
    return next(step for step in budget.steps if not step.affordable)


def _buys(first: Step, last: Step) -> str:
    if last.time_ratio is None:
        return ""
    return (
        f", {last.time:.3g} time units an update in place of {first.time:.3g} ({1 / last.time_ratio:.3g} times as fast)"
    )


def steps(budgets: Sequence[Budget], by: str, over: str, choose: str | None) -> Table:
    """One line per level and delay."""
    table = Table(box=None, pad_edge=False, title="\nby delay", title_justify="left")
    held = list(budgets[0].at)
    for head in (by, *held):
        table.add_column(head)
    for head in (
        over,
        "accuracy",
        "against no delay",
        "lower bound",
        "affordable",
        "time/update",
        "seeds",
        "collapsed",
    ):
        table.add_column(head, justify="right")
    if choose:
        table.add_column(choose)
    for budget in budgets:
        for step in budget.steps:
            names = [spelled(budget.level), *(spelled(budget.at[key]) for key in held)]
            table.add_row(*names, *_cells(budget, step), *([_chosen(step)] if choose else []))
    return table


def _cells(budget: Budget, step: Step) -> list[str]:
    alone = step.delay == 0
    return [
        spelled(step.delay),
        f"{step.accuracy:.3f}",
        "" if alone else interval(step.loss),
        "" if alone or not budget.known else f"{step.loss.low:+.3f}",
        "" if alone else "yes" if step.affordable else "no" if budget.known else "?",
        f"{step.time:.3g}",
        str(len(step.seeds)),
        str(step.collapsed),
    ]


def _chosen(step: Step) -> str:
    counted = Counter(step.chosen.values())
    return " ".join(f"{value:g} ({count})" for value, count in sorted(counted.items()))
