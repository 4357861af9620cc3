"""`delaysim validate`: the clock against closed forms. No torch."""

import argparse
import csv
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from delaysim.run.progress import plain_console

if TYPE_CHECKING:
    from delaysim.validation.check import Outcome

EXAMPLES = """examples:
  delaysim validate                                   every check, one or two minutes
  delaysim validate --quick                           some of them, some seconds
  delaysim validate --format md > docs/validation.md
"""


def validate(arguments: list[str]) -> int:
    """0 if every closed form is met, 1 if one is missed."""
    from delaysim.validation.checks import checks
    from delaysim.validation.page import page

    options = _parser().parse_args(arguments)
    every = checks()
    quick = [check for check in every if check.quick]
    made = _make(quick if options.quick else every, len(every))
    if options.format == "md":
        print(page(made, len(every), len(quick)), end="")
    else:
        {"table": _print_table, "json": _print_json, "csv": _print_csv}[options.format](made)
    return 0 if all(outcome.passed for outcome in made) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="delaysim validate",
        description="Hold the simulated clock to closed forms: queues, caps, fixed delays, published staleness.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="only the checks that take no time")
    parser.add_argument("--format", choices=("table", "json", "csv", "md"), default="table")
    return parser


def _make(checks: Sequence[Any], family: int) -> list["Outcome"]:
    """Make the checks, and say on a terminal which one is under way."""
    from delaysim.validation.check import outcomes

    made: list[Outcome] = []
    with Console(stderr=True).status("") as status:
        for number, check in enumerate(checks, 1):
            status.update(f"{number} of {len(checks)}: {check.law}, {check.setting}")
            made.extend(outcomes([check], family))
    return made


def _print_table(made: list["Outcome"]) -> None:
    from delaysim.validation.page import HEADER, cells

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for place, name in enumerate(HEADER):
        table.add_column(name, justify="right" if 3 <= place < 8 else "left", no_wrap=place != 1)
    for outcome in made:
        table.add_row(*cells(outcome))
    console = plain_console()
    console.print(table)
    missed = sum(not outcome.passed for outcome in made)
    console.print(f"\n{len(made) - missed} of {len(made)} closed forms met" + (f", {missed} MISSED" if missed else ""))


def _values(outcome: "Outcome") -> dict[str, Any]:
    check = outcome.check
    return {
        "law": check.law,
        "setting": check.setting,
        "what": check.what,
        "expected": check.expected,
        "simulated": outcome.measured.value,
        "half_width": outcome.half_width,
        "level": outcome.level,
        "error": outcome.error,
        "tolerance": check.tolerance,
        "passed": outcome.passed,
    }


def _print_json(made: list["Outcome"]) -> None:
    print(json.dumps([_values(outcome) for outcome in made], indent=1))


def _print_csv(made: list["Outcome"]) -> None:
    rows = [_values(outcome) for outcome in made]
    writer = csv.DictWriter(sys.stdout, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
