"""`delaysim audit-verifier`: whether the golds of a file verify against themselves."""

import argparse
import json
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from delaysim.data import read_jsonl
from delaysim.errors import UserError
from delaysim.grading import Grader
from delaysim.grading.audit import Audit, audit
from delaysim.run.progress import plain_console

SHOWN = 8


def audit_verifier(arguments: list[str]) -> int:
    """0, or UserError."""
    options = _parser().parse_args(arguments)
    found = {}
    with Grader(workers=options.workers) as grader:
        for path in options.files:
            rows = read_jsonl(path, ("answer",))
            for number, row in enumerate(rows, 1):
                if isinstance(row["answer"], bool) or not isinstance(row["answer"], str | int | float):
                    raise UserError(f"{path}, line {number}: answer is {json.dumps(row['answer'])[:40]}; give a text")
            found[Path(path).stem] = audit(rows, grader)
    if options.format == "json":
        print(json.dumps({name: _as_json(one) for name, one in found.items()}, ensure_ascii=False, indent=1))
    else:
        _show(found, plain_console())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="delaysim audit-verifier",
        description="Check the reference answers of a file: plain Math-Verify, this package, and a second comparator.",
        epilog="Each line is an object with answer, and where it has them id, problem, answer_type, "
        "is_multiple_answer, unit and tolerance. What the columns mean: docs/grading.md.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="JSON lines")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument(
        "--workers", type=int, choices=range(1, 65), default=1, metavar="N", help="processes (default 1)"
    )
    return parser


def _as_json(one: Audit) -> dict[str, object]:
    return {
        "rows": one.rows,
        "math_verify": dict(one.library),
        "types": dict(one.types.most_common()),
        "accepted": one.accepted,
        "patched": one.patched,
        "refused": one.refused,
        "excluded": one.excluded,
        "pairs": one.pairs,
        "disagreement_rate": one.disagreement_rate,
        "disagreements": one.disagreements,
    }


def _show(found: dict[str, Audit], console: Console) -> None:
    console.print(_library_table(found))
    console.print(_own_table(found))
    for name, one in found.items():
        kinds = ", ".join(f"{kind} {count}" for kind, count in one.types.most_common())
        console.print(Text(f"{name}: {kinds}"))
        _list(console, "patched", one.patched)
        _list(console, "own answer refused", one.refused)
        _list(console, "excluded", one.excluded)
        for gold, answer, accepted in one.disagreements[:SHOWN]:
            who = "only the rules accept" if accepted else "only the second comparator accepts"
            console.print(Text(f"  {who}: gold {gold[:60]!r}, answer {answer[:60]!r}"))
        if len(one.disagreements) > SHOWN:
            console.print(Text(f"  ... and {len(one.disagreements) - SHOWN} more; --format json lists them"))


def _list(console: Console, title: str, rows: dict[str, str]) -> None:
    for name, reason in rows.items():
        console.print(Text(f"  {title}: {name} ({reason})"))


def _library_table(found: dict[str, Audit]) -> Table:
    table = Table(title="plain Math-Verify", box=None)
    titles = ("set", "n", "raw parses", "raw matches", "$ parses", "$ matches", "boxed matches", "object", "timeouts")
    for title in titles:
        table.add_column(title, justify="left" if title == "set" else "right")
    names = ("raw_parses", "raw_matches", "dollar_parses", "dollar_matches", "boxed_matches", "objects", "timeouts")
    for name, one in found.items():
        table.add_row(Text(name), str(one.rows), *(str(one.library[column]) for column in names))
    return table


def _own_table(found: dict[str, Audit]) -> Table:
    table = Table(title="rules of this package, and a second comparator", box=None)
    for title in ("set", "n", "accepted", "patched", "refused", "excluded", "pairs", "disagree"):
        table.add_column(title, justify="left" if title == "set" else "right")
    for name, one in found.items():
        counts = (one.rows, one.accepted, len(one.patched), len(one.refused), len(one.excluded), one.pairs)
        table.add_row(Text(name), *map(str, counts), f"{one.disagreement_rate:.1%}")
    return table
