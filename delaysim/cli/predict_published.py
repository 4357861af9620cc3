"""`delaysim predict --published`: published step times beside predictions."""

from statistics import median
from typing import Any

from rich.table import Table

from delaysim.predict.check import HALF, SHARES, SIGMA, Check, TrainerCheck, checks, trainer_checks
from delaysim.predict.published import TABLES
from delaysim.run.progress import plain_console

NAMES = {0: "on-policy", 1: "1-step off"}
"""Of look-aheads, as the tables call them."""


def rows() -> list[dict[str, Any]]:
    """Every published row as a flat one, those of trainers last."""
    steps = [
        {
            "table": table, "model": c.step.work.model, "operation": _operation(c), "gpus": c.step.cell.gpus,
            "split": c.step.cell.split, "calibrates": c.calibrates, "published_s": c.step.seconds,
            "predicted_s": c.predicted, "low_s": c.low, "high_s": c.high, "error": c.error,
        }
        for table, steps in TABLES.items()
        for c in checks(steps)
    ]  # fmt: skip
    trainers = [
        {
            "table": "prime-rl trainers", "model": c.row.what, "operation": "update", "gpus": c.row.gpus,
            "calibrates": c.calibrates, "published_s": c.row.seconds, "predicted_s": c.predicted, "error": c.error,
        }
        for c in trainer_checks()
    ]  # fmt: skip
    return [*steps, *trainers]


def show() -> None:
    """Two tables: steps of whole systems, and of trainers alone."""
    console = plain_console()
    middle = SHARES[len(SHARES) // 2]
    for line in (
        "seconds of a step as published, and as predicted from the first row of the same model",
        f"assumed, since no row says it: generation is {middle:.0%} of an on-policy step (range: {SHARES[0]:.0%} to"
        f" {SHARES[-1]:.0%}), a GPU makes",
        f"half its tokens/s at {HALF:g} responses at once, lengths are lognormal with sigma {SIGMA:g},"
        " training scales linearly, a sync is free",
        "",
    ):
        console.print(line, markup=False)
    for name, steps in TABLES.items():
        found = list(checks(steps))
        console.print(_table(name, found))
        errors = [abs(c.error) for c in found if not c.calibrates]
        console.print(f"|error| of the {len(errors)} predicted: median {median(errors):.0%}, largest {max(errors):.0%}")
        console.print()
    console.print("a trainer's step as published, and at constant tokens/s per GPU", markup=False)
    console.print(_trainers(list(trainer_checks())))


def _operation(check: Check) -> str:
    eta = check.step.operation.look_ahead
    return NAMES.get(eta, f"{eta}-step off")


def _signed(error: float) -> str:
    return f"{error:+.0%}" if abs(error) >= 0.005 else "0%"


def _table(name: str, found: list[Check]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for title in (name, "", "GPUs", "published", "predicted", "range", "error"):
        left = title in (name, "")
        table.add_column(title, justify="left" if left else "right", no_wrap=True, min_width=22 if title == name else 0)
    for check in found:
        said = (f"{check.predicted:.1f}", f"{check.low:.1f}-{check.high:.1f}", _signed(check.error))
        guessed = ("calibrates", "", "") if check.calibrates else said
        step = check.step
        table.add_row(step.work.model, _operation(check), step.cell.split, f"{step.seconds:g}", *guessed)
    return table


def _trainers(found: list[TrainerCheck]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for title in ("prime-rl", "GPUs", "published", "predicted", "error"):
        table.add_column(title, justify="left" if title == "prime-rl" else "right", no_wrap=True)
    for check in found:
        guessed = ("calibrates", "") if check.calibrates else (f"{check.predicted:.2f}", _signed(check.error))
        table.add_row(check.row.what, str(check.row.gpus), f"{check.row.seconds:g}", *guessed)
    return table
