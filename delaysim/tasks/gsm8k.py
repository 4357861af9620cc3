"""Grade-school word problems whose answer is one number, in training order and grading."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from delaysim.errors import UserError
from delaysim.grading.extract import extract
from delaysim.grading.numbers import same_number
from delaysim.rng import stream
from delaysim.tasks.base import Grade, Problem


@dataclass(frozen=True)
class Gsm8k:
    """Training problems in a new order each epoch, and held-out problems in the order of their file."""

    train: tuple[Problem, ...]
    test: tuple[Problem, ...]
    format_reward: float
    r"""Reward of a wrong answer that stands in `\boxed{}`."""

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
        """1 for the right number, finished or not; the format reward for a wrong one in a box."""
        answer = extract(response)
        if answer is None:
            return Grade(False, 0.0)
        if same_number(problem.answer, answer.text):
            return Grade(True, 1.0)
        return Grade(False, self.format_reward if answer.method == "boxed" else 0.0)


@lru_cache(maxsize=8)
def _order(seed: int, epoch: int, count: int) -> NDArray[np.int64]:
    return stream(seed, "prompt_order", epoch).permutation(count)
