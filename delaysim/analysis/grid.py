"""Runs arranged for comparison: which are alike but for one setting, seed by seed and problem by problem."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delaysim.analysis.endpoints import Endpoint, final
from delaysim.analysis.footing import numbered, on_one_footing
from delaysim.analysis.outcomes import Outcome
from delaysim.analysis.settings import DROP, NO_DROP
from delaysim.errors import UserError
from delaysim.settings.config import AUTO

Level = Any
"""A value of the setting that is compared: an estimator's name, a delay, ..."""


@dataclass(frozen=True)
class Cell:
    """The runs of one configuration, by seed."""

    runs: Mapping[int, Outcome]

    @property
    def collapsed(self) -> int:
        return sum(run.collapsed for run in self.runs.values())

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(sorted(self.runs))

    def table(self, endpoint: Endpoint = final, seeds: Iterable[int] | None = None) -> NDArray[np.float64]:
        """(seeds, problems) of what the runs are judged by."""
        return np.stack([endpoint(self.runs[seed]) for seed in (self.seeds if seeds is None else seeds)])


@dataclass(frozen=True)
class Stratum:
    """Runs that differ in the compared setting and the seed only (and in what belongs to a value of that setting)."""

    at: Mapping[str, Any]
    """What is held: each `--at` key and its value."""
    cells: Mapping[Level, Cell]


def arrange(outcomes: Sequence[Outcome], by: str, at: Sequence[str]) -> list[Stratum]:
    """One stratum per combination of values of the `at` keys, in order. Raises UserError where runs do not compare."""
    _known(outcomes, (by, *at))
    _all_held(outcomes, by, at)
    _same_problems(outcomes)
    strata: dict[tuple[Any, ...], dict[Level, dict[int, Outcome]]] = {}
    for run in outcomes:
        held = tuple(run.settings.get(key) for key in at)
        strata.setdefault(held, {}).setdefault(run.settings.get(by), {})[run.seed] = run
    return [
        Stratum(dict(zip(at, held, strict=True)), {level: Cell(cells[level]) for level in sorted(cells, key=ordered)})
        for held, cells in sorted(strata.items(), key=lambda item: [ordered(value) for value in item[0]])
    ]


def select(outcomes: Sequence[Outcome], where: Mapping[str, Sequence[str]]) -> list[Outcome]:
    """The runs whose settings have one of the given values, on one footing. Raises UserError where none does."""
    outcomes = on_one_footing(outcomes)
    _known(outcomes, where)
    for key, values in where.items():
        kept = [run for run in outcomes if _spellings(run, key) & {spelled(value) for value in values}]
        if not kept:
            there = ", ".join(dict.fromkeys(spelled(run.settings.get(key)) for run in outcomes))
            raise UserError(f"no run has {key}={','.join(values)}; the runs have {key}={there}")
        outcomes = kept
    return numbered(outcomes)


def spelled(value: Any) -> str:
    """A setting's value as people type it: 0.28, 64, gmc, null; 1 and 1.0 alike."""
    if value is None:
        return "null"
    try:
        return f"{float(value):g}" if not isinstance(value, bool) else str(value).lower()
    except (TypeError, ValueError):
        return str(value)


def setting(key: str, value: Any) -> str:
    """A setting as it stands in a sentence: eps=0.28; of what drops groups the limits alone."""
    if key == DROP:
        return "no drop" if value in (NO_DROP, None) else str(value)
    return f"{key}={spelled(value)}"


def ordered(value: Any) -> tuple[int, Any]:
    """A sort key: nothing first, numbers by size, then `none`, then names by letter and by the numbers in them."""
    if value is None:
        return 0, 0
    if value == NO_DROP:
        return 2, []
    return (1, value) if isinstance(value, int | float) else (2, _in_pieces(str(value)))


def _in_pieces(name: str) -> list[tuple[bool, float, str]]:
    """age_max=8 before age_max=30."""
    pieces = [piece for piece in re.split(r"(\d+(?:\.\d+)?)", name) if piece]
    return [(True, float(piece), "") if piece[0].isdigit() else (False, 0.0, piece) for piece in pieces]


def _spellings(run: Outcome, key: str) -> set[str]:
    """Of a look-ahead `auto` and the number that came of it."""
    value = run.settings.get(key)
    return {spelled(value), *([spelled(run.look_ahead)] if key == "eta" and value == AUTO else [])}


def _known(outcomes: Sequence[Outcome], keys: Iterable[str]) -> None:
    known = {key for run in outcomes for key in run.settings}
    for key in keys:
        if key not in known:
            raise UserError(f"no run has a setting {key!r}; those that differ here: {', '.join(varying(outcomes))}")


def _all_held(outcomes: Sequence[Outcome], by: str, at: Sequence[str]) -> None:
    """What differs between values of `by` and not within one belongs to what is compared, like a loss's threshold."""
    loose = varying(outcomes, (by, *at))
    if loose:
        values = ", ".join(dict.fromkeys(spelled(run.settings.get(loose[0])) for run in outcomes))
        raise UserError(
            f"{' and '.join(loose)} also var{'y' if len(loose) > 1 else 'ies'} ({loose[0]}: {values}): "
            f"add --at {','.join([*at, *loose])}, or choose with --where {loose[0]}=VALUE"
        )


def varying(outcomes: Sequence[Outcome], held: Sequence[str] = ()) -> list[str]:
    """The settings that take several values among runs that agree in the `held` ones."""
    seen: dict[tuple[Any, ...], dict[str, set[str]]] = {}
    names = dict.fromkeys(key for run in outcomes for key in run.settings)
    for run in outcomes:
        values = seen.setdefault(tuple(spelled(run.settings.get(key)) for key in held), {})
        for key in names:
            values.setdefault(key, set()).add(spelled(run.settings.get(key)))
    return [key for key in names if any(len(values[key]) > 1 for values in seen.values())]


def _same_problems(outcomes: Sequence[Outcome]) -> None:
    first = outcomes[0]
    for run in outcomes:
        if run.problems != first.problems:
            raise UserError(
                f"{run.run_id} and {first.run_id} were evaluated on different problems: no pairing; choose runs of one "
                "task and evaluation.problems with --where"
            )
