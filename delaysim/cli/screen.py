"""`delaysim screen`: recorded data through any set of estimators, without a model."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from delaysim.cli.check_estimator import named_estimator, parse_setting
from delaysim.errors import UserError
from delaysim.run.progress import plain_console

if TYPE_CHECKING:
    from delaysim.estimators.interface import Estimator
    from delaysim.screening.report import Screened
    from delaysim.screening.sources import Batch
    from delaysim.screening.tally import PerGroup

TOGETHER = 2**17
"""Tokens examined at once: few large operations, which two threads can share, in place of many small ones."""
DEFAULT = ("reinforce", "is", "grpo", "tic", "gmc", "tis", "cispo", "sapo", "gspo", "a3po")
EXAMPLES = """examples:
  delaysim screen runs/fixed_delay/grpo-D64-...            the estimators of the literature on what one run recorded
  delaysim screen RUN_DIR --estimators grpo gmc:eps=0.1 my_loss.py:cap=3
  delaysim screen RUN_DIR --match intervention --to gmc    thresholds of equal strength
  delaysim screen RUN_DIR --mismatch                       engine mismatch in place of delay
  delaysim screen groups.jsonl --format json               groups from elsewhere (docs/screening.md)
"""


def screen(arguments: list[str]) -> int:
    """0, or UserError."""
    options = _parser().parse_args(arguments)
    named = dict(_named(text) for text in options.estimators)
    import torch

    torch.set_num_threads(1)  # a mini-batch is too small to share: each thread has its own
    sources = [Path(text) for text in options.sources]
    if options.match:
        named = _matched(named, sources, options)
    screened = _run(named, sources, options)
    if options.figure:
        _draw(screened, options.figure)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="delaysim screen",
        description="Compare estimators on recorded log-probabilities, without a model.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("sources", nargs="+", help="run directories, or files of groups (.jsonl)")
    parser.add_argument("--estimators", nargs="+", default=DEFAULT, metavar="NAME[:KEY=VALUE,...]",
                        help="built-in names and .py files, each with settings")  # fmt: skip
    parser.add_argument("--match", choices=("intervention", "removed_mass", "second_moment"),
                        help="set every threshold so that this is as strong as the --to estimator's")  # fmt: skip
    parser.add_argument("--to", metavar="NAME", help="whose strength is matched (default: the first estimator)")
    parser.add_argument("--mismatch", action="store_true",
                        help="the log-ratio between sampler and learner at launch in place of the delay's")  # fmt: skip
    parser.add_argument("--format", choices=("table", "json", "csv"), default="table")
    parser.add_argument("--figure", metavar="STEM", help="also draw STEM.svg and STEM.png")
    parser.add_argument("--groups-per-update", type=int, default=8, metavar="B",
                        help="groups of a .jsonl file that make a mini-batch (default 8)")  # fmt: skip
    return parser


def _named(text: str) -> tuple[str, "Estimator"]:
    """gmc, gmc:eps=0.1, my_loss.py:cap=3,power=2: a label and the estimator."""
    name, _, rest = text.partition(":")
    settings = dict(parse_setting(part) for part in rest.split(",") if part)
    label = Path(name).stem + (f":{rest}" if rest else "")
    return label, named_estimator(name, settings)


def _matched(named: dict[str, "Estimator"], sources: list[Path], options: Any) -> dict[str, "Estimator"]:
    from delaysim.screening.match import match, strength, thinned
    from delaysim.screening.sources import read

    to = options.to or next(iter(named))
    if to not in named:
        raise UserError(f"--to {to}: not among the estimators; choose one of {', '.join(named)}")
    batches = thinned(batch.data for batch in read(sources, options.groups_per_update, mismatch=options.mismatch))
    target = strength(named[to], batches, options.match)
    if options.format == "table":
        plain_console().print(f"{options.match} of {to}: {target:.4g}", markup=False)
    chosen = {}
    for label, estimator in named.items():
        found = match(estimator, target, batches, options.match) if label != to else None
        chosen[label] = estimator if found is None else found.estimator
        if found is not None and not found.reached:
            why = "has no threshold" if estimator.eps is None else f"cannot reach it; nearest {found.strength:.4g}"
            print(f"delaysim: {label} {why}", file=sys.stderr)
    return chosen


def _run(named: dict[str, "Estimator"], sources: list[Path], options: Any) -> "Sequence[Screened]":
    from delaysim.screening.ordered import ordered
    from delaysim.screening.report import JsonWriter, show, write_csv
    from delaysim.screening.sources import read
    from delaysim.screening.tally import Tally

    tallies = {label: Tally(estimator) for label, estimator in named.items()}
    writer = JsonWriter(sys.stdout) if options.format == "json" else None

    def look(batch: "Batch") -> "dict[str, PerGroup]":
        return {label: _examined(batch, tally.estimator) for label, tally in tallies.items()}

    batches = read(sources, options.groups_per_update, TOGETHER, options.mismatch)
    for batch, found in ordered(look, batches, os.cpu_count() or 1):
        for label, tally in tallies.items():
            tally.add(batch.data, found[label])
        if writer is not None:
            writer.add(batch, found)
    screened = [(label, tally.estimator, tally.rows()) for label, tally in tallies.items()]
    if writer is not None:
        writer.close(screened)
    elif options.format == "csv":
        write_csv(screened, sys.stdout)
    else:
        show(screened, plain_console())
    return screened


def _examined(batch: "Batch", estimator: "Estimator") -> "PerGroup":
    """An error of a user's file in one line."""
    from delaysim.screening.tally import examine
    from delaysim.settings.chosen import where

    try:
        return examine(batch.data, estimator, batch.sizes)
    except Exception as error:
        path = Path(str(estimator.module.__file__))
        hint = f"delaysim check-estimator {path} shows what is wrong"
        raise UserError(f"{where(error, path)}: {type(error).__name__}: {error}; {hint}") from error


def _draw(screened: "Sequence[Screened]", stem: str) -> None:
    from delaysim.analysis.screen_figure import draw

    draw([(label, rows) for label, _, rows in screened], stem)
