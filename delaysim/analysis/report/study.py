"""Runs that are compared with one another, and which of their settings plays which part."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from delaysim.analysis.grid import Cell, Level, Stratum, arrange, ordered, setting, spelled, varying
from delaysim.analysis.outcomes import Outcome
from delaysim.analysis.plots import SPARE, STYLES, label, style
from delaysim.analysis.report.detail import Detail
from delaysim.settings.config import AUTO

DELAYS = ("D", "eta", "lam", "delays.column")
"""Settings that are put on the axis of delays, the first that takes several values."""
SWEPT = ("eps", "G", "lr", "rule", "drop", "routing")
"""Settings that are compared where only one estimator ran."""
NAMES = {
    "D": "delay D (updates)",
    "eta": "look-ahead (updates)",
    "lam": "length coupling lam",
    "delays.column": "recorded delays",
}


@dataclass(frozen=True)
class Slice:
    """A part of a study in which nothing varies but what is compared, the delay, and the seed."""

    at: Mapping[str, Any]
    cells: Mapping[Any, Mapping[Level, Cell]]
    """By delay."""

    @property
    def name(self) -> str:
        return ", ".join(setting(key, value) for key, value in self.at.items())


@dataclass(frozen=True)
class Study:
    """Runs of one suite on one set of problems."""

    runs: tuple[Outcome, ...]
    details: Mapping[str, Detail]

    @property
    def suite(self) -> str:
        return str(self.runs[0].settings["suite"])

    @cached_property
    def over(self) -> str:
        """The delay's setting."""
        several = [key for key in varying(self.runs) if key in DELAYS]
        usual = {"fixed_delay": "D", "replay": "delays.column"}.get(self.suite, "eta")
        return next((key for key in DELAYS if key in several), usual)

    @cached_property
    def by(self) -> str:
        """What is compared."""
        several = varying(self.runs)
        if "estimator" in several:
            return "estimator"
        loose = varying(self.runs, (self.over,))
        return next((key for key in (*SWEPT, *loose) if key in loose), "estimator")

    @cached_property
    def loose(self) -> tuple[str, ...]:
        """What else varies."""
        return tuple(varying(self.runs, (self.by, self.over)))

    @cached_property
    def strata(self) -> list[Stratum]:
        return arrange(self.runs, self.by, (self.over, *self.loose))

    @cached_property
    def slices(self) -> list[Slice]:
        found: dict[tuple[Any, ...], dict[Any, Mapping[Level, Cell]]] = {}
        for stratum in self.strata:
            held = tuple(stratum.at[key] for key in self.loose)
            found.setdefault(held, {})[stratum.at[self.over]] = stratum.cells
        return [Slice(dict(zip(self.loose, held, strict=True)), cells) for held, cells in found.items()]

    @cached_property
    def delays(self) -> list[Any]:
        return sorted({stratum.at[self.over] for stratum in self.strata}, key=ordered)

    @cached_property
    def levels(self) -> list[Level]:
        return sorted({level for stratum in self.strata for level in stratum.cells}, key=ordered)

    @cached_property
    def seeds(self) -> list[int]:
        return sorted({run.seed for run in self.runs})

    @property
    def random(self) -> str:
        """What the interval of a cell's mean is over."""
        several = {len(cell.seeds) > 1 for stratum in self.strata for cell in stratum.cells.values()}
        if several == {True, False}:
            return "seeds and problems, over problems where a cell has one seed"
        return "seeds and problems" if True in several else "problems"

    @property
    def base(self) -> float:
        """pass@1 before training."""
        return float(self.runs[0].curve[0])

    def name(self, level: Level) -> str:
        """A level as it stands in a sentence."""
        return label(str(level)) if self.by == "estimator" else setting(self.by, level)

    @property
    def name_of_estimator(self) -> str:
        """Of the only one, where something else is compared."""
        return label(str(self.runs[0].settings["estimator"]))

    def look(self, level: Level) -> tuple[str, str]:
        """Its colour and marker: of an estimator the same everywhere."""
        if self.by == "estimator":
            return style(str(level))
        looks = [*STYLES.values(), *SPARE]
        return looks[self.levels.index(level) % len(looks)]

    def at(self, delay: Any) -> str:
        """A delay as it stands in a sentence."""
        return f"{self.over}={spelled(delay)}"

    def asked(self, delay: Any) -> str:
        """A delay as it was asked for: 37 (auto)."""
        auto = self.over == "eta" and any(
            run.settings.get("eta") == delay and self.details[run.run_id].manifest["identity"]["clock"]["eta"] == AUTO
            for run in self.runs
        )
        return spelled(delay) + (f" ({AUTO})" if auto and delay != AUTO else "")

    def place(self, part: Slice, delay: Any) -> str:
        """A cell's place as it stands in a table."""
        return ", ".join(filter(None, (self.at(delay), part.name)))

    def called(self, part: Slice, delay: Any, level: Level) -> str:
        """A cell among the others in a sentence, by what varies; the only one by its level."""
        place = ", ".join(filter(None, (self.at(delay) if len(self.delays) > 1 else "", part.name)))
        name = self.name(level) if len(self.levels) > 1 or not place else ""
        return " at ".join(filter(None, (name, place)))

    def cells(self) -> Iterator[tuple[Slice, Any, Level, Cell]]:
        """Every cell with its place."""
        for part in self.slices:
            for delay, cells in part.cells.items():
                for level, cell in cells.items():
                    yield part, delay, level, cell

    @property
    def details_here(self) -> list[Detail]:
        """Of this study's runs."""
        return [self.details[run.run_id] for run in self.runs]

    def of(self, cell: Cell) -> list[Detail]:
        """Details of a cell's runs, by seed."""
        return [self.details[cell.runs[seed].run_id] for seed in cell.seeds]


def studies(runs: Sequence[Outcome], details: Mapping[str, Detail]) -> list[Study]:
    """Runs of different suites, or evaluated on different problems, are not compared."""
    found: dict[tuple[Any, ...], list[Outcome]] = {}
    for run in runs:
        found.setdefault((run.settings["suite"], run.problems), []).append(run)
    return [Study(tuple(part), details) for part in found.values()]
