"""What a worker process can do. Imports Math-Verify: in workers only."""

import os
import time
from collections.abc import Callable
from typing import Any

from math_verify import parse, verify

from delaysim.grading.golds import Gold
from delaysim.grading.symbolic import COMPARE_S, PARSE_S, Symbolic
from delaysim.grading.verdict import right


def judged(gold: Gold, answer: str) -> bool:
    """Whether an extracted answer is right. Raises TimeoutException."""
    return right(gold, answer, Symbolic(gold.rel_tol, gold.tolerance))


def library(gold: str, answer: str | None) -> tuple[bool, bool]:
    """Whether plain Math-Verify parses a gold, and whether it accepts an answer for it."""
    parsed = parse(gold, parsing_timeout=PARSE_S)
    if answer is None or not parsed:
        return bool(parsed), False
    return bool(parsed), verify(parsed, parse(answer, parsing_timeout=PARSE_S), timeout_seconds=COMPARE_S)


def is_object(gold: str) -> bool:
    """Whether Math-Verify reads a gold as mathematics, not only as a string."""
    return any(not isinstance(found, str) for found in parse(gold, parsing_timeout=PARSE_S))


def sleep(seconds: float) -> bool:
    """Take that long: for the tests of deadlines."""
    time.sleep(seconds)
    return True


def allocate(count: int) -> bool:
    """Take that many bytes for a moment: for the tests of the memory limit."""
    return len(bytearray(count)) == count


JOBS: dict[str, Callable[..., Any]] = {
    "judged": judged,
    "library": library,
    "is_object": is_object,
    "sleep": sleep,
    "allocate": allocate,
    "exit": lambda: os._exit(1),
}
