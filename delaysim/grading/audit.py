"""Do the golds of a file verify against themselves? By plain Math-Verify, and by this package."""

from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import inf
from typing import Any

from delaysim.grading.golds import Gold, GoldError, make_gold
from delaysim.grading.grader import Grader
from delaysim.grading.second import agrees
from delaysim.grading.workers import WorkerDiedError, WorkerTimeoutError

SENTENCE = "So the final answer is \\boxed{%s}."


@dataclass
class Audit:
    """Counts over the golds of one file."""

    rows: int = 0
    library: Counter[str] = field(default_factory=Counter)
    """What Math-Verify manages: raw_parses, raw_matches, dollar_parses, dollar_matches, boxed_matches, objects."""
    types: Counter[str] = field(default_factory=Counter)
    accepted: int = 0
    """Raw answers in a box that this package accepts for their own gold."""
    patched: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    """Own answers that are not accepted, by id, and why."""
    excluded: dict[str, str] = field(default_factory=dict)
    """Golds that cannot be used."""
    pairs: int = 0
    """Judged by both comparators: every gold with its own answer and with the next one's."""
    disagreements: list[tuple[str, str, bool]] = field(default_factory=list)
    """Gold, answer, and whether this package accepts it."""

    @property
    def disagreement_rate(self) -> float:
        return len(self.disagreements) / self.pairs if self.pairs else 0.0


def audit(rows: list[dict[str, Any]], grader: Grader, advance: Callable[[], None] = lambda: None) -> Audit:
    """Audit rows with the fields of a data set: answer, and optionally id, problem, answer_type, unit and so on."""
    found = Audit(rows=len(rows))
    golds = [_gold(row, number, found) for number, row in enumerate(rows, 1)]
    with ThreadPoolExecutor(grader.workers) as threads:
        for counts in threads.map(lambda row: _library(row, grader, advance), rows):
            found.library.update(counts)
    _own(rows, golds, grader, found)
    _cross(rows, golds, grader, found)
    return found


def row_gold(row: dict[str, Any]) -> Gold:
    """The gold of a data set's row. Raises GoldError."""
    tolerance = row.get("tolerance")
    known = isinstance(tolerance, int | float) and 0 <= tolerance < inf
    return make_gold(
        str(row["answer"]),
        id=str(row.get("id") or ""),
        problem=str(row.get("problem") or ""),
        answer_type=str(row.get("answer_type") or "") or None,
        multiple=bool(row.get("is_multiple_answer")),
        unit=str(row.get("unit") or "") or None,
        tolerance=float(tolerance) if known else None,  # type: ignore[arg-type]
    )


def _gold(row: dict[str, Any], number: int, found: Audit) -> Gold | None:
    name = str(row.get("id", number))
    try:
        gold = row_gold(row)
    except GoldError as error:
        found.excluded[name] = str(error)
        return None
    found.types[gold.type] += 1
    if gold.patched:
        found.patched[name] = gold.patched
    return gold


def _library(row: dict[str, Any], grader: Grader, advance: Callable[[], None]) -> Iterable[str]:
    """Names of what plain Math-Verify manages with one gold."""
    answer = str(row["answer"])
    inner, bare = _outside(answer), answer.replace("$", "").strip()
    try:
        raw = grader.pool.ask("library", inner, SENTENCE % inner)
        dollar = grader.pool.ask("library", f"${bare}$", SENTENCE % bare)
        box = grader.pool.ask("library", rf"\boxed{{{bare}}}", SENTENCE % bare)
        an_object = grader.pool.ask("is_object", f"${bare}$")
    except (WorkerTimeoutError, WorkerDiedError):
        return ["timeouts"]
    finally:
        advance()
    names = ("raw_parses", "raw_matches", "dollar_parses", "dollar_matches", "boxed_matches", "objects")
    return [name for name, yes in zip(names, (*raw, *dollar, box[1], an_object), strict=True) if yes]


def _outside(answer: str) -> str:
    """The answer without the dollar signs around the whole of it."""
    inner = answer.strip()
    inner = inner[1:-1] if len(inner) > 1 and inner[0] == inner[-1] == "$" else inner
    return answer if "$" in inner else inner


def _own(rows: list[dict[str, Any]], golds: list[Gold | None], grader: Grader, found: Audit) -> None:
    known = [(row, gold) for row, gold in zip(rows, golds, strict=True) if gold]
    verdicts = grader.grade_many((gold, SENTENCE % row["answer"]) for row, gold in known)
    for (row, gold), verdict in zip(known, verdicts, strict=True):
        found.accepted += verdict.score
        if not verdict.score:
            found.refused[gold.id or gold.answer] = gold.patched or verdict.status
        _second(gold, str(row["answer"]), bool(verdict.score), found)


def _cross(rows: list[dict[str, Any]], golds: list[Gold | None], grader: Grader, found: Audit) -> None:
    answers = [str(row["answer"]) for row in rows]
    pairs = [(gold, other) for gold, other in zip(golds, answers[1:] + answers[:1], strict=True) if gold and other]
    verdicts = grader.grade_many((gold, SENTENCE % other) for gold, other in pairs)
    for (gold, other), verdict in zip(pairs, verdicts, strict=True):
        _second(gold, other, bool(verdict.score), found)


def _second(gold: Gold, answer: str, accepted: bool, found: Audit) -> None:
    found.pairs += 1
    if agrees(gold.answer if gold.patched is None else gold.text, answer) != accepted:
        found.disagreements.append((gold.text, answer, accepted))
