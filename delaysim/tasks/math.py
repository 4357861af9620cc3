"""Math problems in words with a gold answer: training order, held-out problems, and grading by a grader."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from delaysim.errors import UserError
from delaysim.grading.golds import Gold
from delaysim.grading.grader import Grader
from delaysim.rng import stream
from delaysim.tasks.base import Grade, Problem


@dataclass(frozen=True)
class MathTask:
    """Training problems in a new order each epoch, and held-out problems in the order of their file."""

    train: tuple[Problem, ...]
    test: tuple[Problem, ...]
    golds: Mapping[str, Gold]
    """By problem id."""
    format_reward: float
    r"""Reward of a wrong answer that stands in `\boxed{}`."""
    grader: Grader

    def training(self, seed: int, group: int) -> Problem:
        """The problem of one group: each epoch goes through all of them, in an order of its own."""
        epoch, place = divmod(group, len(self.train))
        return self.train[int(_order(seed, epoch, len(self.train))[place])]

    def held_out(self, count: int) -> tuple[Problem, ...]:
        """The first `count` of the held-out problems. Raises UserError where there are fewer."""
        if count > len(self.test):
            raise UserError(f"evaluation.problems={count}, but only {len(self.test)} held-out problems were given")
        return self.test[:count]

    def grade(self, problem: Problem, response: str, finished: bool) -> Grade:
        """1 for the right answer in a box or after its marker; the format reward for a wrong one in a box."""
        verdict = self.grader.grade(self.golds[problem.id], response, finished)
        in_form = verdict.status == "wrong" and verdict.method == "boxed"
        reward = self.format_reward if in_form else float(verdict.score)
        return Grade(verdict.status == "correct", reward, verdict.status)


@lru_cache(maxsize=8)
def _order(seed: int, epoch: int, count: int) -> NDArray[np.int64]:
    return stream(seed, "prompt_order", epoch).permutation(count)
