"""One self-contained page about finished runs: read run by run, arranged, drawn, rendered. No torch, no network."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from delaysim.analysis.evaluations import load_evaluations
from delaysim.analysis.grid import select
from delaysim.analysis.load import run_paths
from delaysim.analysis.outcomes import TOGETHER, Outcome, load_outcomes
from delaysim.analysis.report.answer import Asked
from delaysim.analysis.report.detail import read_detail
from delaysim.analysis.report.origin import left_out
from delaysim.analysis.report.page import content, render
from delaysim.analysis.report.study import studies
from delaysim.errors import UserError

__all__ = ["Asked", "page_of"]


def page_of(paths: Sequence[Path], where: Mapping[str, Sequence[str]], asked: Asked) -> str:
    """The report of the finished runs at or below `paths` as HTML. Raises UserError where there is none."""
    evaluations = {path: _evaluations(path) for path in paths}
    of_runs = [path for path in paths if not evaluations[path] or _has_runs(path)]
    found = [load_outcomes(path) for path in of_runs or paths]
    runs = select(list({run.run_id: run for outcomes in found for run in outcomes.runs}.values()), where)
    unfinished = {name: state for outcomes in found for name, state in outcomes.unfinished.items()}
    places = {run.name: run for path in of_runs for run in run_paths(path)} if unfinished else {}
    missing = [left_out(places[name], state) for name, state in unfinished.items()]
    with ThreadPoolExecutor(TOGETHER) as pool:
        details = dict(zip((run.run_id for run in runs), pool.map(read_detail, runs), strict=True))
    evaluated = [one for of_path in evaluations.values() for one in of_path]
    return render(content(studies(runs, details), asked, missing, evaluated))


def _evaluations(path: Path) -> list[Outcome]:
    """What `delaysim evaluate` found of runs, where it stands below a path."""
    with suppress(UserError):
        return load_evaluations(path)
    return []


def _has_runs(path: Path) -> bool:
    with suppress(UserError):
        return any(run_paths(path))
    return False
