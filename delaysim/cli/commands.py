"""The commands beside runs: `status` and `resume`. No torch until a run starts."""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.table import Table

from delaysim.cli.audit_verifier import audit_verifier
from delaysim.cli.budget import budget
from delaysim.cli.check_estimator import check_estimator
from delaysim.cli.compare import compare
from delaysim.cli.evaluate import evaluate
from delaysim.cli.grade import grade
from delaysim.cli.report import report
from delaysim.cli.screen import screen
from delaysim.cli.theory import theory
from delaysim.errors import UserError
from delaysim.files import locked, read_json
from delaysim.run.progress import Display, clock_time, plain_console
from delaysim.settings.configfile import load_config


def status(arguments: list[str]) -> int:
    """`delaysim status [DIR] [--watch]`: every run below a directory and how far it is."""
    parser = argparse.ArgumentParser(prog="delaysim status", description="Every run below a directory.")
    parser.add_argument("directory", nargs="?", default="runs", help="a runs directory (default: runs)")
    parser.add_argument("--watch", action="store_true", help="refresh every 2 seconds until nothing runs")
    options = parser.parse_args(arguments)
    root, console = Path(options.directory), plain_console()
    if not root.is_dir():
        raise UserError(f"{root} is not a directory: give the folder that holds your runs, e.g. delaysim status runs/")
    while True:
        states = find_runs(root)
        console.print(_table(root, states))
        if not options.watch or not any(state["state"] == "running" for state in states.values()):
            return 0
        time.sleep(2)
        console.clear()


def find_runs(root: Path) -> dict[Path, dict[str, Any]]:
    """status.json of every run below `root`; one that says running but holds no lock was killed."""
    found = {}
    for path in sorted(root.rglob("status.json")):
        state = read_json(path)
        if state.get("state") == "running" and _unlocked(path.parent):
            state["state"] = "killed"
        found[path.parent] = state
    return found


def _unlocked(run: Path) -> bool:
    with locked(run / "lock", wait=False) as got:
        return got


def _table(root: Path, states: dict[Path, dict[str, Any]]) -> Table:
    counts = {name: sum(s.get("state") == name for s in states.values()) for name in ("done", "running")}
    table = Table(title=f"{root}: {len(states)} runs, {counts['done']} done, {counts['running']} running", box=None)
    for name, justify in (
        ("run", "left"),
        ("state", "left"),
        ("update", "right"),
        ("accuracy", "right"),
        ("left", "right"),
    ):
        table.add_column(name, justify=justify, overflow="fold", no_wrap=name != "run")  # type: ignore[arg-type]
    for path, state in states.items():
        accuracy = state.get("pass1")
        table.add_row(
            str(path.relative_to(root)),
            str(state.get("state", "starting")),
            f"{state.get('update', 0)}/{state['updates']}",
            "-" if accuracy is None else f"{accuracy:.3f}",
            clock_time(state.get("left_s")) if state.get("state") == "running" else "",
        )
        if state.get("error"):
            table.add_row(f"  {state['error']}")
    return table


def resume(arguments: list[str]) -> int:
    """`delaysim resume RUN_DIR`: go on with an interrupted run from its last checkpoint."""
    from delaysim.cli.compose import finish_run

    parser = argparse.ArgumentParser(prog="delaysim resume", description="Go on with an interrupted run.")
    parser.add_argument("run", help="its run directory")
    parser.add_argument("--display", default="auto", choices=("auto", "live", "plain", "quiet"))
    options = parser.parse_args(arguments)
    path = Path(options.run)
    cfg = replace(load_config(path / "config.yaml"), resume="must")
    return finish_run(cfg, path, Display(options.display))


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "status": status,
    "resume": resume,
    "theory": theory,
    "check-estimator": check_estimator,
    "compare": compare,
    "budget": budget,
    "report": report,
    "screen": screen,
    "evaluate": evaluate,
    "grade": grade,
    "audit-verifier": audit_verifier,
}
