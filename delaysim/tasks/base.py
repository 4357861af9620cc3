"""The interface between a task and the rest: text in, text out."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Problem:
    """One problem, as text."""

    id: str
    prompt: str
    answer: str


@dataclass(frozen=True)
class Grade:
    """What a response earned."""

    correct: bool
    reward: float


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
