"""`delaysim bias`: do the groups that were trained on stand for those that were generated? No torch."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from delaysim.cli.selection import write_rows
from delaysim.run.progress import plain_console

if TYPE_CHECKING:
    from delaysim.analysis.bias import Cell

EXAMPLES = """examples:
  delaysim -m mode=trace +sweep=length_bias      what four ways to drop groups do, in seconds
  delaysim bias runs/trace                       the same traces side by side
  delaysim -m +sweep=length_bias                 the same policies in training
  delaysim bias runs/simulated_async --format csv
"""
HEADS = {
    "ratio": "trained/\ngenerated", "fresh": "trained/\nfirst", "shortest": "shortest\ntenth",
    "longest": "longest\ntenth", "ks": "KS\n", "dropped": "dropped\n", "delay_mean": "delay\nmean",
    "delay_max": "\nmax", "reward_ratio": "reward\nratio", "accuracy": "accuracy\n",
}  # fmt: skip
"""Columns, by measure."""
SHARES = ("shortest", "longest", "dropped")


def bias(arguments: list[str]) -> int:
    """0, or UserError."""
    options = _parser().parse_args(arguments)
    from delaysim.analysis.bias import cells, load_biased

    found = cells([run for text in options.runs for run in load_biased(Path(text))])
    if options.format != "table":
        write_rows([_row(cell) for cell in found], options.format)
        return 0
    console = plain_console()
    console.print(_table(found))
    for line in _notes(found):
        console.print(line, markup=False)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="delaysim bias",
        description="Trained against generated lengths and rewards, for any runs and traces, over their seeds.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("runs", nargs="+", metavar="RUNS", help="folders of runs or traces, or single ones")
    parser.add_argument("--format", choices=("table", "json", "csv"), default="table")
    return parser


def _row(cell: "Cell") -> dict[str, Any]:
    found = {name: cell.mean(name) for name in HEADS}
    means = {name: value[0] for name, value in found.items() if value is not None}
    halves = {f"{name}_half": value[1] for name, value in found.items() if value is not None}
    return {"cell": cell.label, "seeds": len(cell.runs), "window": _window(cell), **means, **halves}


def _window(cell: "Cell") -> str:
    return "steady" if all(run.window == "steady" for run in cell.runs) else "decided"


def _table(found: "Sequence[Cell]") -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("\ncell")
    shown = [name for name in HEADS if _tells(name, found)]
    for name in shown:
        table.add_column(HEADS[name], justify="right")
    table.add_column("\nseeds", justify="right")
    for cell in found:
        label = cell.label + ("" if _window(cell) == "steady" else " *")
        table.add_row(label, *(_text(name, cell.mean(name)) for name in shown), str(len(cell.runs)))
    return table


def _tells(name: str, found: "Sequence[Cell]") -> bool:
    """Whether a column has something in it; prompts' first groups are all groups where none goes again."""
    means = [cell.mean(name) for cell in found]
    return any(means) and (name != "fresh" or means != [cell.mean("ratio") for cell in found])


def _text(name: str, value: tuple[float, float] | None) -> str:
    if value is None:
        return "-"
    mean, half = value
    if name in SHARES:
        return f"{mean:.0%}"
    if name.startswith("delay"):
        return f"{mean:.1f}" if name == "delay_mean" else f"{mean:.0f}"
    return f"{mean:.3f}" + (f" ±{half:.3f}" if half == half and name != "ks" else "")


def _notes(found: "Sequence[Cell]") -> list[str]:
    lines = ["", "tenths: of the groups, by their longest response: the share of each that was trained"]
    if _tells("fresh", found):
        lines.append("trained/first: of prompts that are launched again only the first group counts as generated")
    if any(len(cell.runs) > 1 for cell in found):
        lines.append("±: 95 % interval over seeds")
    if any(_window(cell) != "steady" for cell in found):
        lines.append("*: too short for a steady state: of the groups that were trained or dropped by the end")
    return lines
