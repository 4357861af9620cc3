"""A screening as a table for people, and as csv and json for programs."""

import csv
import json
from collections.abc import Sequence
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table

from delaysim import measures
from delaysim.estimators.interface import Estimator, settings
from delaysim.files import finite
from delaysim.screening.sources import Batch
from delaysim.screening.tally import COUNTS, SUMS, PerGroup

Screened = tuple[str, Estimator, list[dict[str, Any]]]
"""Label, estimator, and its rows: all delays first, then one per delay bin."""
COLUMNS = {
    "kept": "kept", "removed": "removed", "added": "added", "intervention": "interv.", "clip_fraction": "tokens",
    "ess": "ESS", "second_moment": "2nd mom.", "agreement": "agree",
}  # fmt: skip
BY_DELAY = {
    "kept": "kept: mean coefficient",
    "intervention": "interv.: share of responses changed by more than 1 %",
    "agreement": "agree: cosine with plain importance sampling",
}


def show(screened: Sequence[Screened], console: Console) -> None:
    """One table over all delays, and three by delay."""
    total = screened[0][2][0]
    console.print(
        f"{total['groups']:,} groups of {total['responses'] // total['groups']}, {total['tokens']:,} tokens; mean "
        f"importance ratio {total['ratio']:.4g}",
        markup=False,
    )
    console.print(_overall(screened))
    for column, title in BY_DELAY.items():
        console.print(_by_delay(screened, column, title))
    console.print(
        "kept: mean coefficient. removed, added: importance mass per response. interv., tokens: share\n"
        "of responses, tokens changed. ESS: effective share of a group. 2nd mom.: mean (kept * A)^2.\n"
        "agree: cosine with the update of unclipped importance sampling, per group."
    )


def _overall(screened: Sequence[Screened]) -> Table:
    table = Table(box=None, pad_edge=False, title="all delays", title_justify="left")
    table.add_column("estimator")
    table.add_column("eps", justify="right")
    for head in COLUMNS.values():
        table.add_column(head, justify="right")
    for label, estimator, rows in screened:
        table.add_row(
            label,
            "-" if estimator.eps is None else f"{estimator.eps:.4g}",
            *(_number(rows[0][column]) for column in COLUMNS),
        )
    return table


def _by_delay(screened: Sequence[Screened], column: str, title: str) -> Table:
    table = Table(box=None, pad_edge=False, title=f"\n{title}, by delay", title_justify="left")
    table.add_column("estimator")
    for row in screened[0][2][1:]:
        table.add_column(row["delay"], justify="right")
    for label, _, rows in screened:
        table.add_row(label, *(_number(row[column]) for row in rows[1:]))
    return table


def _number(value: float | None) -> str:
    if value is None or value != value:
        return "-"
    return f"{value:.3g}" if abs(value) >= 1000 else f"{value:.4f}"[:6]


def write_csv(screened: Sequence[Screened], file: TextIO) -> None:
    """One line per estimator and delay bin."""
    writer = csv.writer(file)
    writer.writerow(["estimator", "settings", "eps", "delay", *COUNTS, *SUMS])
    for label, estimator, rows in screened:
        chosen = " ".join(f"{key}={value}" for key, value in settings(estimator.params).items())
        for row in rows:
            writer.writerow([label, chosen, estimator.eps, row["delay"], *(row[key] for key in (*COUNTS, *SUMS))])


class JsonWriter:
    """One JSON object, written while the data goes by: `groups` with every response, then `estimators` in sum."""

    def __init__(self, file: TextIO) -> None:
        self._file, self._first = file, True
        file.write('{"groups": [')

    def add(self, batch: Batch, found: dict[str, PerGroup]) -> None:
        """Every group of a mini-batch: by estimator each response's weight, rho, scaled ratio and coefficient sum."""
        data = batch.data
        for b, group in enumerate(batch.groups):
            per = {label: _responses(batch, b, part) for label, part in found.items()}
            entry = {
                "group": group,
                "delay": int(data.delays[b]),
                "advantages": data.advantages[b].tolist(),
                "estimators": per,
            }
            self._file.write(("" if self._first else ",") + "\n" + json.dumps(finite(entry)))
            self._first = False

    def close(self, screened: Sequence[Screened]) -> None:
        """The sums, and the end of the object."""
        total = {
            label: {
                "name": estimator.name,
                "eps": estimator.eps,
                "settings": settings(estimator.params),
                "delays": rows,
            }
            for label, estimator, rows in screened
        }
        self._file.write('\n],\n"estimators": ' + json.dumps(finite(total), indent=1) + "}\n")


def _responses(batch: Batch, b: int, part: PerGroup) -> dict[str, list[float]]:
    return {
        "weight": measures.weight(batch.data, part.kept)[b].tolist(),
        "rho": batch.data.rho[b].tolist(),
        "scaled": part.kept[b].tolist(),
        "coefficient_sum": part.total[b].tolist(),
    }
