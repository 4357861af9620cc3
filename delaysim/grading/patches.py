"""Answers of data sets that are wrong, empty or say too little: `patches.json`, one row per id."""

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files


@dataclass(frozen=True)
class Patch:
    """What replaces an answer, its type or its unit, and why."""

    reason: str
    answer: str | None = None
    type: str | None = None
    unit: str | None = None
    same_meaning: bool = True
    """Whether the raw answer is right too; false where it is wrong."""


@lru_cache(maxsize=1)
def patches() -> dict[str, Patch]:
    """Every patch by the id of its problem."""
    rows = json.loads(files("delaysim.grading").joinpath("patches.json").read_text("utf-8"))
    return {name: Patch(**row) for name, row in rows.items()}
