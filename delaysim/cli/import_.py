"""`delaysim import`: the log of a real asynchronous run as a ledger, what it says, and the clock beside it."""

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from delaysim.errors import UserError
from delaysim.files import finite
from delaysim.importing.formats import discover
from delaysim.run.progress import plain_console

if TYPE_CHECKING:
    from delaysim.importing.ledger import Ledger
    from delaysim.importing.lines import Tally

OUT = "delaysim-ledger.parquet"
EXAMPLES = """examples:
  delaysim import prime_rl outputs/my-run --cap 8                 a run directory: rollouts, exports or metrics
  delaysim import tinker LOG_DIR --cap 4                          the rollout summaries of every iteration
  delaysim import areal 'logs/**/sessions-r*.jsonl' --B 64        times alone: delays inferred from them
  delaysim import csv run.csv --columns tokens=len version_start=v consumed_update=step
  delaysim import csv run.csv --law eta=4 order=version           the clock as given beside what happened
"""


def import_(arguments: list[str]) -> int:
    """0, or UserError."""
    from delaysim.importing.definitions import derived
    from delaysim.importing.infer import can_infer, inferred
    from delaysim.importing.ledger import Ledger, write_ledger
    from delaysim.importing.lines import Tally
    from delaysim.importing.sources import files

    options = _parser().parse_args(arguments)
    form, tally = discover()[options.log], Tally()
    if options.columns and options.log != "csv":
        raise UserError(f"--columns: the format {options.log} has fields of its own; use delaysim import csv")
    paths = files(options.paths, form)
    ledger = Ledger.of(form.read(paths, tally, *([dict(options.columns)] if options.log == "csv" else [])))
    if not len(ledger):
        raise UserError(_nothing(options.log, paths, tally))
    infers = options.groups_per_update is not None and can_infer(ledger)
    ledger = inferred(ledger, options.groups_per_update) if infers else ledger
    answer = _answer(ledger, options, infers)
    _write(options.out, lambda path: write_ledger(path, ledger, derived(ledger, options.groups_per_update)))
    if options.delays:
        _write(options.delays, lambda path: path.write_text(_delays(ledger)))
    _show(answer, ledger, paths, tally, options)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="delaysim import",
        description="Read the log of a real asynchronous run: its delays, lengths and drops, beside the clock's.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("log", choices=tuple(discover()), help="the log's format")
    parser.add_argument("paths", nargs="+", metavar="PATH", help="files, directories, or patterns in quotes")
    parser.add_argument("--cap", type=_from_zero, metavar="K", help="the run's staleness cap: what it was in fact")
    parser.add_argument("--B", type=_whole, dest="groups_per_update", metavar="B",
                        help="groups of an update; of a log with times alone, delays are inferred with it")  # fmt: skip
    parser.add_argument("--columns", nargs="+", type=_pair, default=[], metavar="NAME=COLUMN",
                        help="of a csv: which column is tokens, version_start, ... (docs/import.md)")  # fmt: skip
    parser.add_argument("--law", nargs="+", type=_pair, default=[], metavar="FIELD=VALUE",
                        help="fields of the clock's law; eta and C_gen come from the log where not given")  # fmt: skip
    parser.add_argument("--out", default=OUT, metavar="PATH", help=f"the ledger, parquet (default {OUT})")
    parser.add_argument("--delays", metavar="PATH", help="also write the groups' delays as CSV, for +suite=replay")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="what is printed")
    return parser


def _from_zero(text: str) -> float:
    value = float(text)
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError(f"{text}: give a number from 0")
    return value


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text)):
        raise argparse.ArgumentTypeError(f"{text}: give a whole number from 1")
    return int(text)


def _pair(text: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not (name and found and value):
        raise argparse.ArgumentTypeError(f"{text}: give NAME=VALUE")
    return name, value


def _nothing(name: str, paths: Sequence[Path], tally: "Tally") -> str:
    """The one line for a log of which no line can be used."""
    reasons = sorted(tally.reasons.items(), key=lambda item: -item[1][0])
    why = "; ".join(f"{count:,} {reason} (first: {first})" for reason, (count, first) in reasons[:3])
    of = str(paths[0]) if len(paths) == 1 else f"{len(paths)} files"
    what = f"{tally.lines:,} lines, none of them a row" if tally.lines else "no lines"
    return f"{of}: {what} of the format {name}{': ' + why if why else ''}"


def _answer(ledger: "Ledger", options: Any, infers: bool) -> dict[str, Any]:
    from delaysim.importing.given import law_fields
    from delaysim.importing.infer import can_infer
    from delaysim.importing.resimulate import Impossible, resimulate
    from delaysim.importing.summary import summarise

    answer = summarise(ledger, options.groups_per_update, options.cap)
    answer |= {"inferred": infers, "can_infer": can_infer(ledger), "clock": None, "no_clock": None}
    fields = law_fields(options.law)
    try:
        return answer | {"clock": resimulate(ledger, fields, options.groups_per_update, infers)}
    except Impossible as reason:
        return answer | {"no_clock": str(reason)}


def _write(place: str, write: Any) -> None:
    try:
        write(Path(place))
    except OSError as error:
        raise UserError(f"cannot write {place}: {error.strerror}") from None


def _delays(ledger: "Ledger") -> str:
    """Update and delay of every group that was trained on, by update."""
    groups = ledger.groups
    known = sorted((n, delay) for n, delay in zip(groups.update, groups.delay, strict=True) if math.isfinite(delay))
    if not known:
        raise UserError("--delays: the log has no delays")
    return "update,delay\n" + "".join(f"{n:.0f},{delay:.0f}\n" for n, delay in known)


def _show(answer: dict[str, Any], ledger: "Ledger", paths: Sequence[Path], tally: "Tally", options: Any) -> None:
    if options.format == "json":
        clock = answer["clock"] and asdict(answer["clock"])
        reasons = {reason: {"count": n, "first": str(first)} for reason, (n, first) in tally.reasons.items()}
        read = {"files": [str(path) for path in paths], "lines": tally.lines, "skipped": reasons}
        print(json.dumps(finite({**read, "says": ledger.said, **answer, "clock": clock}), indent=1))
        return
    console = plain_console()
    for line in _lines(answer, ledger, paths, tally, options):
        console.print(line, markup=False)


def _lines(
    answer: dict[str, Any], ledger: "Ledger", paths: Sequence[Path], tally: "Tally", options: Any
) -> Iterator[str]:
    from delaysim.importing import words

    yield from words.reading(options.log, discover()[options.log], paths, tally, ledger.said)
    yield from words.delays(options.log, answer)
    yield from words.cap(answer)
    yield from words.lengths(answer)
    if answer["clock"] is None:
        yield f"clock          not run: {answer['no_clock']}"
    else:
        yield from words.clock(answer["clock"])
    yield f"ledger         {options.out}"
