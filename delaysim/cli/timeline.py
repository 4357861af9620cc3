"""`delaysim timeline`: pictures of what a run's clock did."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from delaysim.errors import UserError

if TYPE_CHECKING:
    from delaysim.analysis.timeline.record import Record
    from delaysim.analysis.timeline.window import Window

MOST = 50_000
"""Groups in one file for Perfetto, about 25 MB."""
EXAMPLES = """examples:
  delaysim timeline runs/trace/simulated_async-...          everything, into RUN_DIR/timeline/
  delaysim timeline RUN_DIR --only gantt --from 0 --to 300  one picture of 300 units
  delaysim timeline RUN_DIR --only perfetto --gzip          to be opened at ui.perfetto.dev or chrome://tracing
"""


def timeline(arguments: list[str]) -> int:
    """0, or UserError."""
    options = _parser().parse_args(arguments)
    from delaysim.analysis.timeline.record import read_record
    from delaysim.analysis.timeline.window import asked

    record = read_record(options.run)
    options.window = asked(record, options.start, options.end)
    folder = options.out or options.run / "timeline"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"-o {folder}: {error.strerror}; give a folder that can be made") from None
    for name in options.only or DRAW:
        DRAW[name](record, folder, options)
    _say("written to", f"{folder}/")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="delaysim timeline",
        description="Pictures of what a trace's or a run's clock did (docs/timeline.md).",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run", type=Path, metavar="RUN_DIR", help="the directory of a trace or of a finished run")
    parser.add_argument("-o", "--out", type=Path, metavar="FOLDER", help="where to (default: RUN_DIR/timeline)")
    parser.add_argument("--only", nargs="+", choices=tuple(DRAW), metavar="PICTURE",
                        help=f"some of {', '.join(DRAW)} (default: all)")  # fmt: skip
    parser.add_argument("--from", dest="start", type=float, metavar="UNITS",
                        help="perfetto and gantt: begin at this simulated time")  # fmt: skip
    parser.add_argument("--to", dest="end", type=float, metavar="UNITS", help="and end at this one")
    parser.add_argument("--gzip", action="store_true", help="perfetto: write perfetto.json.gz")
    return parser


def _perfetto(record: "Record", folder: Path, options: Any) -> None:
    from delaysim.analysis.timeline.perfetto import write_perfetto

    window, groups = _window_for_perfetto(record, options)
    path = folder / ("perfetto.json.gz" if options.gzip else "perfetto.json")
    write_perfetto(record, window, path)
    _say(path.name, f"{groups:,} groups, {path.stat().st_size / 1e6:.1f} MB; open it at ui.perfetto.dev")
    if groups < len(record) and not _asked(options):
        low, high = window.units
        _say("", f"units {low:g} to {high:g} only: {len(record):,} groups are more than a viewer takes; --from, --to")


def _window_for_perfetto(record: "Record", options: Any) -> "tuple[Window, int]":
    """What was asked for, refused where it is too much; else the run, or a stretch of its steady state."""
    from delaysim.analysis.timeline.window import held, steady_start

    window = options.window
    groups = len(window.overlapping(record.groups["launch"], record.until))
    if groups <= MOST:
        return window, groups
    start = window.start if _asked(options) else steady_start(record)
    fitting = held(record, start, MOST)
    if fitting.end <= fitting.start:
        raise UserError(f"perfetto: more than {MOST:,} groups are out at once; --only gantt delays survival")
    if _asked(options):
        raise UserError(
            f"--from {window.units[0]:g} --to {window.units[1]:g}: {groups:,} groups, a viewer takes {MOST:,}; "
            f"--to {int(fitting.units[1])} would do"
        )
    return fitting, len(fitting.overlapping(record.groups["launch"], record.until))


def _asked(options: Any) -> bool:
    return options.start is not None or options.end is not None


def _gantt(record: "Record", folder: Path, options: Any) -> None:
    from delaysim.analysis.timeline.gantt import draw
    from delaysim.analysis.timeline.window import views

    shown = [("", options.window)] if _asked(options) else views(record)
    _say("gantt.svg, .png", draw(record, shown, str(folder / "gantt")))


def _delays(record: "Record", folder: Path, _options: Any) -> None:
    from delaysim.analysis.timeline.delays import draw

    _say("delays.svg, .png", draw(record, str(folder / "delays")))


def _survival(record: "Record", folder: Path, _options: Any) -> None:
    from delaysim.analysis.timeline.survival import draw

    _say("survival.svg, .png", draw(record, str(folder / "survival")))


def _say(file: str, what: str) -> None:
    print(f"{file:<20}{what}")


DRAW: dict[str, Callable[["Record", Path, Any], None]] = {
    "perfetto": _perfetto,
    "gantt": _gantt,
    "delays": _delays,
    "survival": _survival,
}
