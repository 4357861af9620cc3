"""Arguments and output that `compare` and `budget` share."""

import argparse
import csv
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from delaysim.errors import UserError
from delaysim.files import finite

if TYPE_CHECKING:
    from delaysim.analysis.outcomes import Outcome

NO_SEEDS = "one seed says nothing of how the next would differ: run seed=0,1,2 or more"
FEW = "two seeds: a 95 % interval then holds about nine times in ten; run a third before you act on it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """RUNS, --where and --format."""
    parser.add_argument("runs", nargs="+", metavar="RUNS", help="folders of runs, or run directories")
    parser.add_argument("--where", nargs="+", action="extend", default=[], metavar="KEY=VALUE[,VALUE]",
                        help="only the runs with these settings")  # fmt: skip
    parser.add_argument("--alpha", type=float, default=0.05, help="chance of any false verdict (default 0.05)")
    parser.add_argument("--looks", metavar="S,S,...",
                        help="the numbers of seeds at which verdicts are read; alpha is spent over them")  # fmt: skip
    parser.add_argument("--format", choices=("table", "json", "csv"), default="table")


@dataclass(frozen=True)
class Selected:
    """The runs a command is about, and what it says of the others."""

    runs: "list[Outcome]"
    notes: list[str]


def selected(options: argparse.Namespace) -> Selected:
    """The finished runs (or the evaluations of runs) that were asked for, each once."""
    from delaysim.analysis.evaluations import load_evaluations, require_asked_alike
    from delaysim.analysis.grid import select
    from delaysim.analysis.outcomes import load_outcomes

    if getattr(options, "benchmarks", False):
        runs = {run.path.resolve(): run for text in options.runs for run in load_evaluations(Path(text))}
        chosen = select(list(runs.values()), dict(map(condition, options.where)))
        require_asked_alike(chosen)
        return Selected(chosen, [])
    read = [load_outcomes(Path(text)) for text in options.runs]
    notes = [f"left out, {state}: {run}" for outcomes in read for run, state in outcomes.unfinished.items()]
    found = {run.run_id: run for outcomes in read for run in outcomes.runs}
    return Selected(select(list(found.values()), dict(map(condition, options.where))), notes)


def condition(text: str) -> tuple[str, list[str]]:
    """KEY=VALUE[,VALUE] of --where."""
    key, equals, values = text.partition("=")
    if not (key and equals and values):
        raise UserError(f"--where {text}: write KEY=VALUE or KEY=VALUE,VALUE, e.g. --where eps=0.28")
    return key, values.split(",")


def write_rows(rows: Sequence[dict[str, Any]], how: str) -> None:
    """Flat rows as csv, or as one json list, on standard output."""
    if how == "json":
        print(json.dumps(finite(list(rows)), indent=1))
        return
    writer = csv.DictWriter(sys.stdout, list(dict.fromkeys(key for row in rows for key in row)))
    writer.writeheader()
    writer.writerows(finite(row) for row in rows)


ENDPOINTS = {
    "final": "accuracy: pass@1 on {} held-out problems, mean of the last three evaluations",
    "area": "accuracy: area under pass@1 over updates, on {} held-out problems",
    "until": "updates until pass@1 on {} held-out problems reaches {}; never = all updates of the run",
}


def heading(found: Selected, endpoint: str = "final") -> list[str]:
    """What was read, and what it is judged by."""
    seeds = sorted({run.seed for run in found.runs})
    text = f"{len(found.runs)} runs, seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"
    collapsed = sum(run.collapsed for run in found.runs)
    name, _, level = endpoint.partition("=")
    problems, sets = f"{len(found.runs[0].problems):,}", dict.fromkeys(found.runs[0].sets)
    judged = ENDPOINTS[name].format(problems, level)
    if sets:
        judged = f"accuracy: mean score on {problems} problems of {', '.join(sets)}"
    return [f"{text}; {collapsed} collapsed, counted in every mean" if collapsed else text, judged]


def level_of_look(alpha: float, looks: str | None, runs: "Sequence[Outcome]") -> float:
    """The level of a verdict: alpha, or at one of several looks the part of it that this look spends."""
    if looks is None:
        return alpha
    import numpy as np

    from delaysim.analysis.stats import look_level, spend

    planned, seeds = tuple(sorted(int(part) for part in looks.split(","))), len({run.seed for run in runs})
    if seeds not in planned:
        raise UserError(f"--looks {looks}: these runs have {seeds} seeds, which is no planned look")
    return look_level(seeds, spend(planned, alpha, np.random.default_rng(0)))
