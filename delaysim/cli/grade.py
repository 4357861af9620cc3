"""`delaysim grade`: answers against golds, one JSON object a line."""

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any

from rich.table import Table
from rich.text import Text

from delaysim.data import read_jsonl
from delaysim.errors import UserError
from delaysim.grading import Gold, GoldError, Grader, Verdict, make_gold
from delaysim.grading.verdict import MODES
from delaysim.run.progress import plain_console

EXAMPLES = """examples:
  delaysim grade answers.jsonl                     {"gold": "1/2", "prediction": "The answer is \\\\boxed{0.5}."}
  delaysim grade answers.jsonl --format json       one object a line, in the order of the file
  delaysim grade answers.jsonl --mode strict       only a box, #### or "the answer is" counts (docs/grading.md)
"""
TEXTS = ("id", "problem", "answer_type", "unit")


@dataclass(frozen=True)
class Line:
    """A line of the file, checked."""

    number: int
    name: str
    gold: Gold | None
    """None where the gold cannot be used; `error` says why."""
    error: str | None
    prediction: str
    finished: bool


def grade(arguments: list[str]) -> int:
    """0, or UserError."""
    options = _parser().parse_args(arguments)
    lines = list(_lines(options.file, options.rel_tol))
    with Grader(workers=options.workers, deadline_s=options.deadline) as grader:
        known = [(line.gold, line.prediction, line.finished) for line in lines if line.gold is not None]
        judged = iter(grader.grade_many(known, options.mode))
        verdicts = [next(judged) if line.gold else Verdict("gold_error", 0) for line in lines]
    (_print_json if options.format == "json" else _print_table)(lines, verdicts)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="delaysim grade",
        description="Judge answers: JSON lines with gold and prediction, optionally id, problem, answer_type, "
        "is_multiple_answer, unit, tolerance, finished.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", help="JSON lines")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--mode", choices=MODES, default="flexible", help="where answers are looked for (flexible)")
    parser.add_argument("--rel-tol", type=_tolerance, default=0.0, metavar="X", help="difference allowed, of the gold")
    parser.add_argument("--workers", type=_count, default=1, metavar="N", help="processes for algebra (default 1)")
    parser.add_argument("--deadline", type=_seconds, default=8.0, metavar="S", help="seconds an answer may take (8)")
    return parser


def _tolerance(text: str) -> float:
    value = float(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError("give 0 or more, below 1")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("give 1 or more")
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < 3600:
        raise argparse.ArgumentTypeError("give seconds above 0, below 3600")
    return value


def _lines(path: str, rel_tol: float) -> Iterator[Line]:
    for number, row in enumerate(read_jsonl(path, ("gold", "prediction")), 1):
        where = f"{path}, line {number}"
        for name in ("gold", "prediction"):
            if isinstance(row[name], bool) or not isinstance(row[name], str | int | float):
                raise UserError(f"{where}: {name} is {json.dumps(row[name])[:40]}; give a text or a number")
        for name in TEXTS:
            if not isinstance(row.get(name) or "", str) and not (name == "id" and isinstance(row[name], int)):
                raise UserError(f"{where}: {name} is {json.dumps(row[name])[:40]}; give a text")
        gold, error = _gold(row, where, rel_tol)
        name = str(row.get("id", number))
        yield Line(number, name, gold, error, str(row["prediction"]), _finished(row, where))


def _finished(row: dict[str, Any], where: str) -> bool:
    finished = row.get("finished", True)
    if not isinstance(finished, bool):
        raise UserError(f"{where}: finished is {json.dumps(finished)[:40]}; give true or false")
    return finished


def _gold(row: dict[str, Any], where: str, rel_tol: float) -> tuple[Gold | None, str | None]:
    allowed = row.get("tolerance") or 0.0
    if isinstance(allowed, bool) or not isinstance(allowed, int | float) or not 0 <= allowed < inf:
        raise UserError(f"{where}: tolerance is {json.dumps(allowed)[:40]}; give a number, 0 or more")
    try:
        gold = make_gold(
            str(row["gold"]),
            id=str(row.get("id") or ""),
            problem=str(row.get("problem") or ""),
            answer_type=row.get("answer_type"),
            multiple=bool(row.get("is_multiple_answer")),
            unit=row.get("unit"),
            tolerance=allowed,
            rel_tol=rel_tol,
        )
    except GoldError as error:
        return None, str(error)
    return gold, None


def _print_json(lines: list[Line], verdicts: list[Verdict]) -> None:
    for line, verdict in zip(lines, verdicts, strict=True):
        row = {"line": line.number, "id": line.name, "status": verdict.status, "score": verdict.score}
        row |= {"method": verdict.method, "extracted": verdict.extracted, "type": line.gold and line.gold.type}
        row |= {"error": line.error} if line.error else {"ms": round(verdict.ms, 2)}
        print(json.dumps(row, ensure_ascii=False))


def _print_table(lines: list[Line], verdicts: list[Verdict]) -> None:
    counts = Counter(verdict.status for verdict in verdicts)
    title = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    table = Table(title=f"{len(lines)} answers: {title}", box=None)
    for name in ("line", "id", "status", "score", "method", "gold", "answer"):
        table.add_column(name, justify="right" if name in ("line", "score") else "left", overflow="fold")
    for line, verdict in zip(lines, verdicts, strict=True):
        gold = line.gold.text if line.gold else ""
        answer = (line.error or verdict.extracted or "")[:40]
        cells = (line.name, verdict.status, str(verdict.score), verdict.method or "-", gold[:40], answer)
        table.add_row(str(line.number), *map(Text, cells))
    plain_console().print(table)
