"""Settings of several runs on one footing: what one of them has and another leaves off, and `auto` beside numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from delaysim.analysis.outcomes import Outcome
from delaysim.analysis.settings import UNSAID
from delaysim.settings.config import AUTO

Settings = Mapping[str, Any]


def filled(tables: Sequence[Settings]) -> list[dict[str, Any]]:
    """Every setting of UNSAID that one of the runs has, in all of them."""
    known = {key: UNSAID[key] for table in tables for key in table if key in UNSAID}
    return [{**known, **table} for table in tables]


def on_one_footing(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The same runs with `filled` settings."""
    tables = filled([run.settings for run in outcomes])
    return [replace(run, settings=table) for run, table in zip(outcomes, tables, strict=True)]


def numbered(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """A look-ahead of `auto` as the number that came of it, where other runs were given one: they share an axis."""
    asked = [run.settings.get("eta") for run in outcomes]
    if not any(isinstance(eta, int) for eta in asked):
        return list(outcomes)
    return [
        replace(run, settings={**run.settings, "eta": run.look_ahead})
        if eta == AUTO and run.look_ahead is not None
        else run
        for run, eta in zip(outcomes, asked, strict=True)
    ]
