"""What was found: tables for people, csv and json for programs."""

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table

from delaysim.estimators.interface import Estimator, settings
from delaysim.files import finite
from delaysim.moe_noise.crossings import ALONE, CASES, TIPPED, with_threshold
from delaysim.moe_noise.experiment import DENSE, MOE, Found
from delaysim.moe_noise.reading import mean, reading
from delaysim.moe_noise.rows import CONTROL, MIXTURE, RowOf, cells
from delaysim.moe_noise.setting import Setting
from delaysim.moe_noise.slopes import lengths

HEADS = {"none": "none", "r2": "R2", "r3": "R3", TIPPED: "not R3", ALONE: "alone"}
"""Of the columns of CASES."""


def show(setting: Setting, found: Sequence[Found], console: Console) -> None:
    """A table per seed, two over all seeds per delay, and what they say."""
    for seed in sorted({f.seed for f in found}):
        _print(console, f"seed {seed}", _of_seed(setting, [f for f in found if f.seed == seed]))
    mixtures = [[f for f in found if f.model == MOE and f.delay == delay] for delay in setting.delays]
    for mixture in mixtures:
        _print(console, f"D={mixture[0].delay}: share that each estimator acts on [%]", _acts(mixture))
    title = f"D={setting.delays[-1]}: the same on routing noise alone, by tokens in a response"
    _print(console, title, _by_length(setting, mixtures[-1]))
    for mixture in mixtures:
        for line in reading(mixture, setting.length):
            console.print(line, markup=False)


def _print(console: Console, title: str, table: Table) -> None:
    console.print(title, markup=False)
    console.print(table)
    console.print()


def _of_seed(setting: Setting, found: Sequence[Found]) -> Table:
    table = _table()
    table.add_column("")
    for delay in setting.delays:
        table.add_column(f"D={delay}", justify="right")
    for model, rows in ((MOE, MIXTURE), (DENSE, CONTROL)):
        of = [f for f in found if f.model == model]
        for row in rows:
            _add(table, row, of)
    return table


def _add(table: Table, row: RowOf, found: Sequence[Found]) -> None:
    both = [cells(row, f.numbers.get(row.name or "")) for f in found]
    table.add_row(row.label, *(value for value, _ in both))
    if any(interval for _, interval in both):
        table.add_row("    95 %", *(interval for _, interval in both))


def _acts(mixture: Sequence[Found]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for head in ("estimator", "threshold", "of"):
        table.add_column(head)
    for case in CASES:
        table.add_column(HEADS[case], justify="right")
    for estimator in with_threshold():
        shares = [mean(mixture, f"acts_{estimator.name}_{case}") for case in CASES]
        table.add_row(estimator.name, _threshold(estimator), unit(estimator), *map(_percent, shares))
    return table


def _by_length(setting: Setting, mixture: Sequence[Found]) -> Table:
    """Of whole responses; a token's share does not depend on how many follow."""
    table = _table()
    table.add_column("estimator")
    for length in lengths(setting.length):
        table.add_column(f"{length}", justify="right")
    for estimator in (e for e in with_threshold() if e.level != "token"):
        names = [f"acts_{estimator.name}_{ALONE}_{length}" for length in lengths(setting.length)]
        table.add_row(estimator.name, *(_percent(mean(mixture, name)) for name in names))
    return table


def unit(estimator: Estimator) -> str:
    """What an estimator acts on."""
    return {"token": "token", "sequence": "mean", "trajectory": "product"}[estimator.level]


def _threshold(estimator: Estimator) -> str:
    values = settings(estimator.params).items()
    return " ".join(f"{key}={value:g}" for key, value in values if isinstance(value, float))


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.2g}" if share < 0.01 else f"{100 * share:.1f}"


def _table() -> Table:
    return Table(box=None, pad_edge=False)


def write_csv(found: Sequence[Found], file: TextIO) -> None:
    """One line a number."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["seed", "model", "delay", "quantity", "value", "low", "high"])
    writer.writerows(row.values() for row in _tidy(found))


def write_json(setting: Setting, found: Sequence[Found], file: TextIO) -> None:
    """One object: `setting`, and `numbers` as in the csv."""
    thresholds = {estimator.name: settings(estimator.params) for estimator in with_threshold()}
    value = {"setting": asdict(setting), "thresholds": thresholds, "numbers": list(_tidy(found))}
    json.dump(finite(value), file, indent=1)
    file.write("\n")


def _tidy(found: Sequence[Found]) -> Iterator[dict[str, Any]]:
    for f in found:
        for number in f.numbers.values():
            yield {
                "seed": f.seed,
                "model": f.model,
                "delay": f.delay,
                "quantity": number.name,
                "value": number.value,
                "low": number.low,
                "high": number.high,
            }
