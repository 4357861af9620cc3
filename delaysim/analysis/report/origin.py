"""What was asked and run, with what, and what went wrong."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from delaysim import __version__
from delaysim.analysis.grid import spelled
from delaysim.analysis.report.blocks import Block, Fold, Items, Lines, Paragraph, Section, Table
from delaysim.analysis.report.study import Study
from delaysim.analysis.report.words import count, number, ranges
from delaysim.files import read_json
from delaysim.run.progress import clock_time

LOG_LINES = 5
TRUNCATED, BASE_SHARE, FLOOR = 0.1, 0.25, 1e-3
"""Shares of responses cut at the limit and of groups from the base policy, and a log-ratio at delay 0, worth a word."""


@dataclass(frozen=True)
class LeftOut:
    """A run that did not finish."""

    run_id: str
    state: str
    error: str
    log: tuple[str, ...]


def left_out(path: Path, state: str) -> LeftOut:
    """What its directory says of how it ended."""
    status, log = path / "status.json", path / "run.log"
    error = str(read_json(status).get("error") or "") if status.exists() else ""
    lines = log.read_text(errors="replace").splitlines()[-LOG_LINES:] if log.exists() else []
    return LeftOut(path.name, state, error, tuple(lines))


# asked and run


def run_section(all_studies: Sequence[Study]) -> Section:
    """Commands, versions, seeds, code, and every run in one table."""
    manifests = [study.details[run.run_id].manifest for study in all_studies for run in study.runs]
    legs = [leg for manifest in manifests for leg in manifest["legs"]]
    runs = [run for study in all_studies for run in study.runs]
    commands = list(dict.fromkeys(leg["command"] for leg in legs))
    wall = sum(study.details[run.run_id].whole["wall_s"] for study in all_studies for run in study.runs)
    blocks: list[Block] = [
        Paragraph(f"{count(len(runs), 'finished run')}, {clock_time(wall)} of wall time in all. The same commands run "
                  "what is missing and skip what is there:"),
        Lines("\n".join(commands)),
        Table("With what", ("", "runs", ""), tuple(_with_what(manifests, legs)), words=1),
        Fold("Settings", (_settings(all_studies),)),
        Fold(f"Every run ({len(runs)})", (_runs(all_studies),)),
    ]  # fmt: skip
    return Section("run", "Asked and run", _title(runs, commands), blocks)


def _title(runs: Sequence[Any], commands: Sequence[str]) -> str:
    seeds = len({run.seed for run in runs})
    return f"{count(len(runs), 'run')}, {count(seeds, 'seed')}, {count(len(commands), 'command')}"


def _with_what(
    manifests: Sequence[Mapping[str, Any]], legs: Sequence[Mapping[str, Any]]
) -> Iterable[tuple[str, str, str]]:
    code = Counter(_code(manifest["code"]) for manifest in manifests)
    machines = Counter(_machine(leg) for leg in legs)
    python = Counter(f"Python {leg['machine']['python']}" for leg in legs)
    packages = Counter(", ".join(f"{name} {version}" for name, version in leg["packages"].items()) for leg in legs)
    for name, found in (("code", code), ("machine", machines), ("python", python), ("packages", packages)):
        for i, (text, n) in enumerate(found.most_common()):
            yield name if i == 0 else "", f"{n:,}", text
    yield "this page", "", f"delaysim {__version__}"


def _machine(leg: Mapping[str, Any]) -> str:
    machine = leg["machine"]
    return f"{machine['cpu']}, {count(machine['cores'], 'core')}, {count(leg['threads'], 'thread')}"


def _code(code: Mapping[str, Any]) -> str:
    commit = f", commit {code['commit'][:12]}" if code.get("commit") else ""
    changed = f", with changes {code['diff'][:8]}" if code.get("diff") else ""
    return f"delaysim {code['version']}{commit}{changed}"


def _settings(all_studies: Sequence[Study]) -> Table:
    runs = [run for study in all_studies for run in study.runs]
    names = dict.fromkeys(key for run in runs for key in run.settings)
    rows = [("seed", ranges({run.seed for run in runs}))]
    for key in names:
        values = list(dict.fromkeys(spelled(run.settings[key]) for run in runs if key in run.settings))
        rows.append((key, ", ".join(values) if len(values) <= 12 else f"{len(values)} values"))
    return Table(
        "Everything that decides a run's rows; several values: swept.", ("setting", "value"), tuple(rows), words=1
    )


def _runs(all_studies: Sequence[Study]) -> Table:
    rows = []
    for study in all_studies:
        for run in study.runs:
            wall = study.details[run.run_id].whole["wall_s"]
            state = "collapsed" if run.collapsed else run.state
            rows.append((run.run_id, state, f"{run.reached:,}", number(run.curve[0]),
                         number(run.final), number(float(run.greedy[-1])), f"{run.total('tokens'):,.0f}",
                         f"{run.total('sim_time'):,.0f}", clock_time(wall)))  # fmt: skip
    head = ("run", "state", "updates", "base", "final", "greedy", "tokens", "simulated time", "wall time")
    return Table("final: mean of the last three evaluations; greedy: the last.", head, tuple(rows), left=2)


# what went wrong


def trouble_section(all_studies: Sequence[Study], missing: Sequence[LeftOut]) -> Section:
    """Runs that did not finish, and what a careful reader should know of the others."""
    warnings = [warning for study in all_studies for warning in _warnings(study)]
    blocks: list[Block] = []
    if missing:
        rows = tuple((run.run_id, run.state, run.error) for run in missing)
        blocks.append(Table("Left out of every number above", ("run", "state", "error"), rows, left=2, words=1))
        blocks += [
            Fold(f"Last lines of {run.run_id}", (Lines("\n".join(run.log)),))
            for run in missing
            if run.state == "failed"
        ]
    if warnings:
        blocks.append(Items(tuple(warnings)))
    return Section("trouble", "Failures", _trouble(missing, len(warnings)), blocks)


def _trouble(missing: Sequence[LeftOut], warnings: int) -> str:
    failed = sum(run.state == "failed" for run in missing)
    other = len(missing) - failed
    parts = [failed and count(failed, "failed run"), other and count(other, "unfinished run")]
    found = [part for part in (*parts, warnings and count(warnings, "warning")) if part]
    return ", ".join(map(str, found)) or "Nothing failed, nothing to warn of"


def _warnings(study: Study) -> Iterable[str]:
    runs, details = study.runs, study.details_here
    yield from _told(
        sum(run.collapsed for run in runs), "collapsed; it stays in every mean", "collapsed; they stay in every mean"
    )
    frozen = sum(run.moments.get("version0_share", 0) > BASE_SHARE for run in runs)
    yield from _told(frozen, f"took over {BASE_SHARE:.0%} of its groups from the untrained policy: short for its delay",
                     f"took over {BASE_SHARE:.0%} of their groups from the untrained policy: short for their delay",
                     )  # fmt: skip
    cut = sum(detail.whole["truncated"] > TRUNCATED for detail in details)
    yield from _told(cut, f"had over {TRUNCATED:.0%} of its responses cut at the length limit")
    saturated = sum(detail.whole["saturated"] > 0 for detail in details)
    yield from _told(saturated, "met coefficients at the bound e^30")
    yield from _told(sum(len(detail.manifest["legs"]) > 1 for detail in details), "interrupted and resumed")
    yield from _told(
        sum(bool(detail.manifest["code"].get("diff")) for detail in details), "made by code with uncommitted changes"
    )
    if len({detail.manifest["code"].get("commit") for detail in details}) > 1:
        yield "Runs were made by different commits of the code."
    uneven = {cell.seeds for _, _, _, cell in study.cells()}
    if len(uneven) > 1:
        yield "Cells have different seeds; every comparison uses the seeds that both sides share."


def _told(n: int, one: str, many: str | None = None) -> Iterable[str]:
    if n:
        yield f"{count(n, 'run')} {one if n == 1 else many or one}."
