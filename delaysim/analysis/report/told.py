"""Cells by the accounts that their runs left (account.json)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isnan
from typing import Any

from delaysim.accuracy import half_width, mean_se
from delaysim.analysis.grid import Cell, Level
from delaysim.analysis.report.study import Slice, Study
from delaysim.analysis.report.words import DASH, number

Numbers = Mapping[str, Any]
Pick = Callable[[Numbers], float | None]
"""A number of an account; None where it cannot tell."""


@dataclass(frozen=True)
class Told:
    """One cell."""

    part: Slice
    delay: Any
    level: Level
    cell: Cell
    called: str
    """In a sentence."""
    row: tuple[str, str]
    """Level and place in a table."""
    accounts: tuple[Numbers, ...]
    """Of its runs that have one, by seed."""

    def values(self, pick: Pick) -> list[float]:
        """By run, without those that cannot tell."""
        return [value for value in map(pick, self.accounts) if value is not None and not isnan(value)]

    def mean(self, pick: Pick) -> float:
        """Over runs; NaN where none can tell."""
        values = self.values(pick)
        return mean_se(values)[0] if values else float("nan")

    def interval(self, pick: Pick) -> str:
        """The mean and half its 95 % t interval over seeds."""
        values = self.values(pick)
        if not values:
            return DASH
        mean, se = mean_se(values)
        half = half_width(se, len(values))
        return number(mean) if isnan(half) else f"{number(mean)} ±{half:.3f}"


def told(study: Study, what: str) -> list[Told]:
    """The cells with a run whose account has this part."""
    found = []
    for part, delay, level, cell in study.cells():
        accounts = tuple(detail.account for detail in study.of(cell) if what in detail.account)
        if accounts:
            row = study.name(level), study.place(part, delay)
            found.append(Told(part, delay, level, cell, study.called(part, delay, level), row, accounts))
    return found
