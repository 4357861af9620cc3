"""`delaysim budget`: how much delay each estimator affords, and what that delay buys."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from delaysim.cli.selection import FEW, NO_SEEDS, add_arguments, heading, level_of_look, selected, write_rows
from delaysim.errors import UserError
from delaysim.run.progress import plain_console

if TYPE_CHECKING:
    from delaysim.analysis.budget import Budget, Step

EXAMPLES = """examples:
  delaysim budget runs/ --tolerance 0.02                    the largest delay at which two points are not lost
  delaysim budget runs/ --choose lr                         each estimator at its best learning rate, by other seeds
  delaysim budget runs/ --over lam                          length coupling in place of a fixed delay
"""


def budget(arguments: list[str]) -> int:
    """0, or UserError."""
    options = _parser().parse_args(arguments)
    if options.tolerance <= 0:
        raise UserError(f"--tolerance {options.tolerance:g}: give the loss you accept, above 0, e.g. --tolerance 0.02")
    found = selected(options)
    from delaysim.analysis.budget import budgets
    from delaysim.analysis.grid import arrange, varying

    choose = options.choose if options.choose in varying(found.runs) else None
    held = varying(found.runs, [key for key in (options.by, options.over, choose) if key])
    strata = arrange(found.runs, options.by, [key for key in (options.over, choose, *held) if key])
    confidence = 1 - level_of_look(options.alpha, options.looks, found.runs)
    rows = budgets(strata, options.over, choose, options.tolerance, confidence)
    if options.format != "table":
        flat = [_row(options, row, step) for row in rows for step in row.steps]
        write_rows(flat, options.format)
    else:
        _print(options, rows, [*heading(found), *found.notes], choose, confidence)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="delaysim budget",
        description="The largest delay each estimator affords (docs/compare.md).",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)
    parser.add_argument("--tolerance", type=float, default=0.02, help="the loss of accuracy you accept (default 0.02)")
    parser.add_argument(
        "--by", default="estimator", metavar="KEY", help="one budget per value of it (default: estimator)"
    )
    parser.add_argument("--over", default="D", metavar="KEY", help="the delay (default: D)")
    parser.add_argument("--choose", default="lr", metavar="KEY",
                        help="a setting chosen anew for each delay, by the other seeds (default: lr)")  # fmt: skip
    return parser


def _row(options: Any, budget: "Budget", step: "Step") -> dict[str, Any]:
    """A delay of a budget as one flat row."""
    loss = step.loss
    return {
        options.by: budget.level, **budget.at, options.over: step.delay, "accuracy": step.accuracy,
        "difference": loss.mean, "low": loss.low, "high": loss.high, "df": loss.df, "tolerance": options.tolerance,
        "affordable": step.affordable if loss.seed_variance else None, "largest": budget.largest,
        "seeds": len(step.seeds), "collapsed": step.collapsed, "time_per_update": step.time,
        "time_over_no_delay": step.time_ratio,
        "chosen": " ".join(f"{seed}:{value:g}" for seed, value in step.chosen.items()),
    }  # fmt: skip


def _print(options: Any, rows: "Sequence[Budget]", lines: Sequence[str], choose: str | None, confidence: float) -> None:
    from delaysim.cli.budget_table import answer, steps

    console = plain_console()
    for line in [*lines, ""]:
        console.print(line, markup=False)
    title = f"largest {options.over} whose loss stays within {options.tolerance:g}, there and at every smaller one"
    console.print(f"{title} (lower bounds of {100 * confidence:.3g} % intervals)", markup=False)
    for row in rows:
        console.print(answer(row, options.over), markup=False)
    console.print(steps(rows, options.by, options.over, choose))
    if choose:
        console.print(f"{choose}: best on average over the other seeds, for each seed by itself", markup=False)
    least = min(len(step.seeds) for row in rows for step in row.steps)
    if least < 3:
        console.print(f"no budget: {NO_SEEDS}" if least == 1 else FEW, markup=False)
