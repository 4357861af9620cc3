"""What grading says of one response, and the part of it that needs no algebra."""

from dataclasses import dataclass
from typing import Literal

from delaysim.grading.extract import extract
from delaysim.grading.golds import Gold, quotes
from delaysim.grading.latex import LONGEST, plain
from delaysim.grading.rules import same
from delaysim.grading.scalar import Check, Exact, UndecidedError, literally

Status = Literal["correct", "wrong", "no_answer", "truncated", "gold_error", "timeout", "worker_died"]
MODES = ("strict", "flexible")


@dataclass(frozen=True)
class Verdict:
    """How one response was judged."""

    status: Status
    score: int
    """1 where the status is correct, else 0."""
    method: str | None = None
    """How the answer was found (`delaysim.grading.extract.Extracted.method`), None where none was."""
    extracted: str | None = None
    ms: float = 0.0
    """Time it took [milliseconds]."""


def right(gold: Gold, answer: str, check: Check | None = None) -> bool:
    """Whether an extracted answer is right. Raises UndecidedError where the check knows no algebra."""
    answer = plain(answer)
    if len(answer) > LONGEST:
        return answer == gold.text
    if literally(answer) in gold.accepts:
        return True
    if quotes(gold, answer):
        return False
    return same(gold.type, gold.text, answer, check or Exact(gold.rel_tol, gold.tolerance), gold.unit)


def judge(gold: Gold, response: str, finished: bool = True, mode: str = "strict") -> Verdict | str:
    """The verdict, or the extracted answer where only algebra can tell. Raises ValueError on an unknown mode."""
    if mode not in MODES:
        raise ValueError(f"mode={mode!r}: choose one of {', '.join(MODES)}")
    found = extract(response, flexible=mode == "flexible")
    if found is None:
        return Verdict("no_answer" if finished else "truncated", 0)
    try:
        return verdict(right(gold, found.text), found.method, found.text)
    except UndecidedError:
        return found.text


def verdict(correct: bool, method: str, extracted: str) -> Verdict:
    """A verdict on an answer that was found."""
    return Verdict("correct" if correct else "wrong", int(correct), method, extracted)
