"""The interface between a task and the rest: text in, text out."""

from dataclasses import dataclass
from typing import Protocol

INSTRUCTION = "Please reason step by step, and put your final answer within \\boxed{}."
"""What a math problem is asked with unless the user says otherwise (Qwen2.5-Math's)."""


@dataclass(frozen=True)
class Problem:
    """One problem, as text."""

    id: str
    prompt: str
    answer: str
    instruction: str = ""
    """What is asked beside the problem itself; the model's template says where it stands."""
    examples: tuple[tuple[str, str], ...] = ()
    """Problems with their responses, shown before it."""


@dataclass(frozen=True)
class Grade:
    """What a response earned."""

    correct: bool
    reward: float
    status: str = ""
    """How the grading ended, where a grader did it: correct | wrong | no_answer | truncated | timeout | worker_died."""


class Task(Protocol):
    """Problems and their grading; a pure function of its arguments."""

    def training(self, seed: int, group: int) -> Problem:
        """The problem of one training group."""
        ...

    def held_out(self, count: int) -> tuple[Problem, ...]:
        """The first `count` evaluation problems; they do not depend on any seed and are never trained on."""
        ...

    def grade(self, problem: Problem, response: str, finished: bool) -> Grade:
        """Grade a response; `finished` says whether it ended with a stop token rather than at the length limit."""
        ...


UNGRADED = ("timeout", "worker_died")
"""Statuses of responses that no verdict was reached on."""
UNGRADED_SHARE, UNGRADED_LEAST = 0.01, 10


def too_many_ungraded(failed: int, total: int) -> bool:
    """Whether grading fails too often to go on: in more than 1 % of `total` responses, and ten times at least."""
    return failed >= UNGRADED_LEAST and failed > UNGRADED_SHARE * total
