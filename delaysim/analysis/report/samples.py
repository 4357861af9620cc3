"""What the models wrote, at several points of training. Text here is what a stranger wrote: the template escapes it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from delaysim.analysis.grid import Level
from delaysim.analysis.outcomes import Outcome
from delaysim.analysis.report.blocks import Block, Fold, Paragraph, Section, Table
from delaysim.analysis.report.curves import few
from delaysim.analysis.report.language import Decode, language_of
from delaysim.analysis.report.study import Study
from delaysim.analysis.rowfiles import read_columns

LOOKS, PROBLEMS, RESPONSES, RUNS, LONGEST = 4, 2, 2, 6, 600
"""Points of training, problems, responses to each, runs, characters of a response."""


def sample_section(study: Study) -> Section:
    """A few runs, each at its base, twice between, and its end."""
    runs = few(_chosen(study), RUNS)
    written = [(run, _rows(run)) for run in runs]
    folds: list[Block] = [Fold(_name(study, run), tuple(_responses(run, rows))) for run, rows in written]
    return Section("samples", "Responses", _title([rows for _, rows in written]), [Paragraph(_what()), *folds])


def _title(written: Sequence[pd.DataFrame]) -> str:
    """How the last greedy responses fared."""
    last = [rows[(rows["update"] == rows["update"].max()) & (rows["response"] == 0)] for rows in written]
    right, of = sum(int(rows["correct"].sum()) for rows in last), sum(len(rows) for rows in last)
    return f"What the models wrote: {right} of the last {of} greedy responses below are right"


def _what() -> str:
    return (
        f"The first {PROBLEMS} held-out problems; the greedy response and the first sampled one; cut at {LONGEST} "
        "characters. Control characters are shown as \N{REPLACEMENT CHARACTER}."
    )


def _chosen(study: Study) -> list[Outcome]:
    """The first seed of every level, at the largest and the smallest delay."""
    found: dict[tuple[Level, Any], Outcome] = {}
    for _, delay, level, cell in study.cells():
        if delay in (study.delays[0], study.delays[-1]):
            found.setdefault((delay == study.delays[0], level), cell.runs[cell.seeds[0]])
    return [found[key] for key in sorted(found, key=lambda key: key[0])]


def _name(study: Study, run: Outcome) -> str:
    where = f"{study.name(run.settings[study.by])}, {study.at(run.settings.get(study.over))}"
    return f"{where}, seed {run.seed}: {run.curve[0]:.3f} to {run.final:.3f}"


def _rows(run: Outcome) -> pd.DataFrame:
    """The rows of `evals` that are shown."""
    rows = read_columns(run.path / "evals.jsonl", ("update", "problem", "response", "correct", "length", "tokens"))
    rows = rows[rows["tokens"].notna() & (rows["response"] < RESPONSES)]
    return rows[rows["problem"].isin(rows["problem"].unique()[:PROBLEMS])]


def _responses(run: Outcome, rows: pd.DataFrame) -> list[Block]:
    language = language_of(run)
    looks = few(sorted(rows["update"].unique().tolist()), LOOKS)
    tables: list[Block] = [Paragraph(language.note)] if language.note else []
    for problem in rows["problem"].unique():
        of_it = rows[(rows["problem"] == problem) & rows["update"].isin(looks)]
        lines = tuple(_line(row, language.decode) for row in of_it.to_dict("records"))
        asked = language.prompts.get(problem)
        caption = f"{problem}: {asked}" if asked else str(problem)
        tables.append(Table(caption, ("update", "response", "right", "tokens", "text"), lines, left=3, words=1))
    return tables


def _line(row: dict[str, Any], decode: Decode) -> tuple[str, ...]:
    text = shown(decode([int(token) for token in np.asarray(row["tokens"])]))
    kind = "greedy" if row["response"] == 0 else f"sample {row['response']}"
    return str(row["update"]), kind, "yes" if row["correct"] else "no", str(row["length"]), text


def shown(text: str) -> str:
    """A response as it can stand on a page."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} … ({len(text) - LONGEST:,} more characters)"
