"""`delaysim predict`: what an operation of given GPUs takes, in hours, money and delay. No torch."""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from delaysim.cli.selection import condition, write_rows
from delaysim.errors import UserError
from delaysim.files import finite

if TYPE_CHECKING:
    from delaysim.predict.ask import Choice
    from delaysim.predict.inputs import Question
    from delaysim.predict.join import Curve, Line

EXAMPLES = """examples:
  delaysim predict examples/predict/costs.yaml              everything from one file
  delaysim predict examples/predict/costs.yaml --gpus 64 --eta 1 4 16 -o speed
  delaysim predict --gpus 32 --B 64 --G 8 --lengths mean=600 cap=4096 --speed 1=60 64=2200 256=3600 --trainer 8=60
  delaysim predict costs.yaml --calibrate RUN_DIR           what a run of delaysim measured, in place of the file's
  delaysim predict costs.yaml --trainer-csv baselines.csv --row model=Qwen/Qwen3-4B-Instruct-2507 lora_rank=16 ...
  delaysim predict costs.yaml --runs runs/                  and what accuracy that is, by the hour
  delaysim predict --published                              the error against published step times
"""
FLAGS = ("gpus", "B", "G", "sync", "slots", "scaling", "eta", "trainer_gpus", "unit", "price")
"""Flags that set the key of the same name."""


def predict(arguments: list[str]) -> int:
    """0, or UserError."""
    options = _options(arguments)
    if options.published:
        return _published(options)
    values, sources = _values(options)
    from delaysim.predict.ask import answer
    from delaysim.predict.inputs import question

    asked, runs = question(values, sources), _runs(options)
    choices = answer(asked, options.seed)
    lines = _joined(choices, *runs) if runs else []
    if options.out:
        from delaysim.cli.predict_tables import caption
        from delaysim.predict.figure import draw

        draw(choices, caption(asked), options.out)
    _print(options, asked, choices, lines)
    return 0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; delaysim predict --help shows examples")


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = _Parser(
        prog="delaysim predict",
        description="Speed, idle shares, delay and cost of synchronous, one-step-off and fully\n"
        "asynchronous training over the splits of given GPUs (docs/predict.md).",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("costs", nargs="?", metavar="COSTS.yaml", help="any of the values below by name; flags win")
    _cost_flags(parser.add_argument_group("costs"))
    _grid_flags(parser.add_argument_group("grid"))
    measured = parser.add_argument_group("measured costs")
    measured.add_argument("--calibrate", metavar="RUN_DIR", help="a finished run: its lengths and its seconds")
    measured.add_argument("--trainer-csv", metavar="FILE", help="a csv with num_gpus and step_s_mean or tok_s_mean")
    measured.add_argument("--row", nargs="+", action="extend", default=[], metavar="COLUMN=VALUE[,...]",
                          help="which rows of it; they may differ in their number of GPUs")  # fmt: skip
    measured.add_argument("--published", action="store_true", help="the error against published step times, and end")
    joined = parser.add_argument_group("accuracy by the hour")
    joined.add_argument("--runs", nargs="+", metavar="RUNS", help="finished runs at several delays")
    joined.add_argument("--where", nargs="+", action="extend", default=[], metavar="KEY=VALUE[,VALUE]",
                        help="only the runs with these settings")  # fmt: skip
    joined.add_argument(
        "--hours", nargs="+", help="when accuracy is read [hours] (default: 1/4, 1/2 and all of what the fastest needs)"
    )
    parser.add_argument("--format", choices=("table", "json", "csv"), default="table")
    parser.add_argument("-o", "--out", metavar="STEM", help="draw speed against delay: STEM.svg and STEM.png")
    parser.add_argument("--seed", type=int, default=0, help="of the drawn lengths (default 0)")
    return parser.parse_args(arguments)


def _cost_flags(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--speed", nargs="+", metavar="COUNT=TOKENS",
                       help="tokens/s of one rollout GPU at COUNT responses at once, or a csv")  # fmt: skip
    group.add_argument("--slots", help="responses at once on a rollout GPU at most (default: the largest COUNT)")
    group.add_argument("--trainer", nargs="+", metavar="GPUS=SECONDS", help="seconds of an update, or a csv")
    group.add_argument("--scaling", help="seconds go with GPUs^-SCALING beyond the table, 0..1 (default 1)")
    group.add_argument("--sync", help="seconds until the rollout GPUs have new weights (default 0)")
    group.add_argument("--price", help="money per GPU-hour")
    group.add_argument("--lengths", nargs="+", metavar="KEY=VALUE",
                       help="mean= [tokens] sigma= prompt_share= cap=, or path=FILE column=NAME")  # fmt: skip
    group.add_argument("--B", help="groups in a mini-batch")
    group.add_argument("--G", help="responses in a group")


def _grid_flags(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--gpus", help="GPUs in all")
    group.add_argument("--trainer-gpus", nargs="+", help="GPUs that train, one split each; the rest generate")
    group.add_argument("--unit", help="else every multiple of so many GPUs trains (default: an eighth of all)")
    group.add_argument("--eta", nargs="+", help="look-aheads of fully asynchronous operation (default 4 16)")


# where values come from: the file, then a run, then a csv, then flags


def _values(options: argparse.Namespace) -> tuple[dict[str, Any], dict[str, str]]:
    """Every value and its source; a later source takes the place of an earlier one."""
    from delaysim.predict.inputs import read_yaml

    values: dict[str, Any] = {}
    sources: dict[str, str] = {}

    def take(found: Mapping[str, Any], source: str) -> None:
        values.update(found)
        sources.update(dict.fromkeys(found, source))

    if options.costs:
        take(read_yaml(options.costs), Path(options.costs).name)
    if options.calibrate:
        from delaysim.predict.calibrate import from_run

        if (options.B, options.G) != (None, None):
            raise UserError("--calibrate measured updates of the run's own B and G: drop --B and --G")
        take(from_run(options.calibrate), Path(options.calibrate).name)
    take(_flags(options), "given")
    if options.trainer_csv and not options.trainer:
        take(*_from_csv(options, values, sources))
    elif options.row and not options.trainer_csv:
        raise UserError("--row chooses from a csv: add --trainer-csv FILE")
    return values, sources


def _flags(options: argparse.Namespace) -> dict[str, Any]:
    found = {key: getattr(options, key) for key in FLAGS if getattr(options, key) is not None}
    for key, name in (("speed", "--speed"), ("trainer", "--trainer")):
        given = getattr(options, key)
        if given:
            found[key] = given[0] if len(given) == 1 and "=" not in given[0] else pairs(name, given)
    if options.lengths:
        found["lengths"] = dict(pairs("--lengths", options.lengths))
    return found


def pairs(flag: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    """KEY=VALUE arguments, in their order."""
    split = [text.partition("=") for text in texts]
    for text, (key, equals, value) in zip(texts, split, strict=True):
        if not (key and equals and value):
            raise UserError(f"{flag} {text}: write KEY=VALUE, e.g. {HINTS[flag]}")
    return [(key, value) for key, _, value in split]


def conditions(text: str) -> list[str]:
    """COLUMN=VALUE,COLUMN=VALUE taken apart; a comma within a value stays."""
    parts = text.split(",")
    return parts if all("=" in part for part in parts) else [text]


HINTS = {
    "--speed": "--speed 1=60 64=2200, or one csv file",
    "--trainer": "--trainer 8=60, or one csv file",
    "--lengths": "--lengths mean=600 cap=4096",
    "--row": "--row num_gpus=8",
}


def _from_csv(
    options: argparse.Namespace, values: Mapping[str, Any], sources: Mapping[str, str]
) -> tuple[dict[str, Any], str]:
    """The trainer's table at this work: tokens of an update, drawn as the clock draws them."""
    from delaysim.predict.calibrate import from_csv
    from delaysim.predict.inputs import question
    from delaysim.predict.work import update_tokens

    work = question({**values, "trainer": {1: 1}}, sources).costs.work
    where = dict(pairs("--row", [part for text in options.row for part in conditions(text)]))
    seconds, words = from_csv(options.trainer_csv, where, update_tokens(work, options.seed))
    return {"trainer": seconds}, words


def _runs(options: argparse.Namespace) -> "tuple[list[Curve], list[float]] | None":
    """The runs to join with, and the hours at which they are read; none where they are not asked for."""
    if not options.runs:
        return None
    from delaysim.predict.inputs import above_zero
    from delaysim.predict.join import curves, read_runs

    hours = [above_zero("--hours", text) for text in options.hours or []]
    return curves(read_runs(options.runs, dict(map(condition, options.where)))), hours


def _joined(choices: "Sequence[Choice]", found: "Sequence[Curve]", hours: Sequence[float]) -> "list[Line]":
    """The fastest split of each operation with the accuracy that runs at its delay had."""
    from delaysim.predict.ask import best_splits
    from delaysim.predict.join import default_hours, lines

    best = [choice.prediction for choice in best_splits(choices)]
    return lines(best, found, hours or default_hours(best, found))


# what is printed


def _print(
    options: argparse.Namespace, asked: "Question", choices: "Sequence[Choice]", lines: "Sequence[Line]"
) -> None:
    from delaysim.cli import predict_tables as tables

    if options.format == "csv":
        write_rows([tables.joined_row(line) for line in lines] or [tables.row(c, asked) for c in choices], "csv")
    elif options.format == "json":
        print(json.dumps(finite(tables.document(asked, choices, lines)), indent=1))
    else:
        tables.show(asked, choices, lines)


def _published(options: argparse.Namespace) -> int:
    from delaysim.cli import predict_published as published

    if options.format == "table":
        published.show()
    else:
        write_rows(published.rows(), options.format)
    return 0
