"""An evaluation's numbers as a table, as JSON, as CSV. No torch."""

import csv
import json
from pathlib import Path
from typing import Any, TextIO

from rich.table import Table

from delaysim.files import finite
from delaysim.run.progress import plain_console

TITLES = {"macro": "macro", "item_weighted": "item-weighted", "deduplicated": "deduplicated"}
NOTE = """average: share of right sampled responses, with a 95 % interval over clusters of problems
macro: sets alike; item-weighted: problems alike; deduplicated: near copies and parts of one question once"""


def show(card: dict[str, Any], folder: Path) -> None:
    """One line per set, then the means."""
    console, n = plain_console(), card["n"]
    table = Table(box=None, pad_edge=False)
    table.add_column("set")
    ks = _ks(card)
    shown = [k for k in ks if k > 1][-1:]
    columns = ["problems", "greedy", f"avg@{n}" if n else "average", *(f"pass@{k}" for k in shown)]
    for title in [*columns, *([f"maj@{n}"] if n > 1 else []), "cut", "no answer", "tokens"]:
        table.add_column(title, justify="right")
    for name, found in card["sets"].items():
        rest = [_percent(found["truncated"]), _percent(found["unanswered"]), f"{found['length_mean']:.0f}"]
        passes = [_percent(found["pass_at_k"][k]) for k in shown]
        table.add_row(name, *_front(found), *passes, *([_percent(found["majority"])] if n > 1 else []), *rest)
    for name, found in card["means"].items():
        majority = [_percent(found["majority"])] if n > 1 else []
        table.add_row(TITLES[name], *_front(found), *("" for _ in shown), *majority, "", "", "")
    console.print(table)
    console.print(NOTE, markup=False)
    if ungraded := sum(found["ungraded"] for found in card["sets"].values()):
        console.print(f"{ungraded} responses could not be graded in time and count as wrong", markup=False)
    console.print(f"rows: {folder / 'rows.jsonl'}", markup=False)


def _front(found: dict[str, Any]) -> list[str]:
    interval = found["half_width"]
    half = "" if interval != interval else f" ±{100 * interval:.1f}"
    return [str(found["problems"]), _percent(found["greedy"]), _percent(found["average"]) + half]


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}"


def _ks(card: dict[str, Any]) -> list[int]:
    return list(next(iter(card["sets"].values()))["pass_at_k"]) if card["sets"] else []


def write_json(card: dict[str, Any], file: TextIO) -> None:
    """One object; intervals that do not exist are null."""
    file.write(json.dumps(finite(card), indent=1) + "\n")


def write_csv(card: dict[str, Any], file: TextIO) -> None:
    """One line per set and mean."""
    ks, writer = _ks(card), csv.writer(file)
    plain = ["problems", "clusters", "greedy", "average", "se", "half_width", "majority"]
    only_sets = ["truncated", "unanswered", "length_mean", "ungraded"]
    at_k = {"pass_at_k": "pass", "majority_at_k": "maj"}
    writer.writerow(["kind", "name", "n", *plain, *(f"{short}@{k}" for short in at_k.values() for k in ks), *only_sets])
    for kind in ("sets", "means"):
        for name, found in card[kind].items():
            values = finite(found)
            curves = [values.get(key, {}).get(k) for key in at_k for k in ks]
            writer.writerow(
                [kind[:-1], name, card["n"], *(values[key] for key in plain), *curves, *map(values.get, only_sets)]
            )
