"""`delaysim status`: the runs and sweeps of a directory, under whichever launcher. No torch."""

import argparse
import time
from collections import Counter
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from delaysim.run.overview import WAITING, Overview, Seen, SweepSeen, overview
from delaysim.run.progress import WIDTH, clock_time

WATCH_EVERY_S = 2.0
ERROR = 2 * WIDTH
"""Of an error on a watched screen [characters]."""
ORDER = ("running", "killed", "failed", "interrupted", "starting", "collapsed", "done")
"""Of states in a watched table: what asks for attention first."""
COUNTED = ("done", "running", "failed", WAITING, "collapsed", "interrupted", "killed", "starting")
"""Of states in a line of counts; the first two stand there even at 0."""


def status(arguments: list[str]) -> int:
    """`delaysim status [DIR] [--watch]`: every run below a directory and how far it is."""
    parser = argparse.ArgumentParser(prog="delaysim status", description="Every run and sweep below a directory.")
    parser.add_argument("directory", nargs="?", default="runs", help="a runs directory (default: runs)")
    parser.add_argument("--watch", action="store_true", help="refresh every 2 seconds until nothing runs")
    options = parser.parse_args(arguments)
    root = Path(options.directory)
    console = Console(highlight=False)
    console = console if console.is_terminal else Console(highlight=False, width=WIDTH)
    if options.watch and console.is_terminal:
        _watch(root, console)
    elif options.watch:
        _follow(root, console)
    console.print(page(root, overview(root)))
    return 0


def _watch(root: Path, console: Console) -> None:
    """A screen of the terminal's height until nothing runs."""
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while (seen := overview(root)).active:
            live.update(page(root, seen, console.height - 1), refresh=True)
            time.sleep(WATCH_EVERY_S)


def _follow(root: Path, console: Console) -> None:
    """The counts whenever they change, where the output is a file."""
    said = None
    while (seen := overview(root)).active:
        lines = _head(root, seen)
        if lines != said:
            console.print("\n".join(lines), markup=False, soft_wrap=True)
        said = lines
        time.sleep(WATCH_EVERY_S)


def page(root: Path, seen: Overview, height: int | None = None) -> RenderableType:
    """The whole of it; with a height in lines, what asks for attention first and the rest counted."""
    head = _head(root, seen)
    runs = list(seen.runs.values())
    if height is not None:
        runs = sorted(runs, key=lambda run: (ORDER.index(run.state) if run.state in ORDER else 0, -run.written))
    shown = _fitting(runs, height, len(head) + 2 + len({run.path.parent for run in runs}))
    rest = Counter(run.state for run in runs[len(shown) :])
    parts: list[RenderableType] = [Text(line) for line in head]
    if shown:
        parts.append(_table(root, shown))
    parts += [Text(_error(run, ERROR if height is not None else None)) for run in shown if run.error]
    if rest:
        parts.append(Text(f"and {_counts(rest)} more", style="dim"))
    return Group(*parts)


def _fitting(runs: list[Seen], height: int | None, used: int) -> list[Seen]:
    shown: list[Seen] = []
    for run in runs:
        used += 1 + 2 * bool(run.error)
        if height is not None and used > height:
            break
        shown.append(run)
    return shown


def _head(root: Path, seen: Overview) -> list[str]:
    counts = Counter(run.state for run in seen.runs.values())
    line = f"{root.resolve().name}: {len(seen.runs)} runs, {counts['done']} done, {counts['running']} running"
    rest = _counts(Counter({state: count for state, count in counts.items() if state not in ("done", "running")}))
    return [line + (f", {rest}" if rest else ""), *(_sweep_line(sweep) for sweep in seen.sweeps)]


def _sweep_line(sweep: SweepSeen) -> str:
    text = f"sweep {sweep.file.name}: {sweep.counts['done']} of {len(sweep.file.runs)} done"
    rest = _counts(Counter({state: count for state, count in sweep.counts.items() if state != "done"}))
    text += f", {rest}" if rest else ""
    if sweep.left_s is not None:
        return f"{text}; {clock_time(sweep.left_s)} left"
    return text if sweep.alive or not sweep.counts[WAITING] else f"{text}; not under way"


def _counts(counts: Counter[str]) -> str:
    known = [state for state in COUNTED if counts[state]]
    return ", ".join(f"{counts[state]} {state}" for state in [*known, *sorted(counts.keys() - set(COUNTED))])


def _error(run: Seen, most: int | None) -> str:
    text = f"{run.state} {run.path.name}: {run.error}"
    return text if most is None or len(text) <= most else text[: most - 1] + "…"


def _table(root: Path, runs: list[Seen]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("run", overflow="fold")
    table.add_column("state", no_wrap=True)
    for name in ("update", "pass@1", "left"):
        table.add_column(name, justify="right", no_wrap=True)
    for folder in dict.fromkeys(run.path.parent for run in runs):
        if folder not in (root, root.parent):
            table.add_row(Text(f"{folder.relative_to(root)}/", style="dim"))
        for run in runs:
            if run.path.parent == folder:
                _add(table, run)
    return table


def _add(table: Table, run: Seen) -> None:
    status, accuracy = run.status, run.status.get("pass1")
    table.add_row(
        run.path.name,
        run.state,
        f"{status.get('update', 0)}/{status['updates']}",
        "-" if accuracy is None else f"{accuracy:.3f}",
        clock_time(status.get("left_s")) if run.state == "running" else "",
    )
