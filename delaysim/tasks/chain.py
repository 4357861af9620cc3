"""Chain sums modulo 10, work optional: `4+8+3=` has the answer 5 (docs/tiny.md).

A response is right iff it stops after `>` and the right digit. Before that anything may stand: showing the work is
optional, longer and more often right. A worked response restates the running sum and echoes operands one at a time;
after each it writes `>` and the new sum, or skips that: `48>2,23>5` in full, `483>5` with one skip, `>5` a guess.
"""

from dataclasses import dataclass

import numpy as np

from delaysim.rng import stream
from delaysim.tasks.base import Grade, Problem

CHARACTERS = "0123456789+=>,"
HELD_OUT_SEED = 99_999
SLIP = 0.05
"""Probability that a written sum of a demonstration is off."""
MIXTURE = ((0.40, None), (0.08, 1.0), (0.30, 0.65), (0.22, 0.3))
"""Demonstrations: share, and the probability of writing a sum where it could be skipped (None: a guess)."""


@dataclass(frozen=True)
class Chain:
    """Sums of min_terms..max_terms digits, uniformly."""

    min_terms: int = 3
    max_terms: int = 7

    def training(self, seed: int, group: int) -> Problem:
        return self._problem(stream(seed, "prompt", group), f"chain/train/{group}")

    def held_out(self, count: int) -> tuple[Problem, ...]:
        return tuple(self._problem(stream(HELD_OUT_SEED, "held_out", i), f"chain/test/{i}") for i in range(count))

    def grade(self, problem: Problem, response: str, finished: bool) -> Grade:
        correct = finished and response[-2:] == ">" + problem.answer
        return Grade(correct, float(correct))

    def _problem(self, rng: np.random.Generator, name: str) -> Problem:
        digits = draw_digits(rng, self.min_terms, self.max_terms)
        return Problem(name, "+".join(map(str, digits)) + "=", str(sum(digits) % 10))


def draw_digits(rng: np.random.Generator, min_terms: int, max_terms: int) -> list[int]:
    """The operands of one problem."""
    terms = int(rng.integers(min_terms, max_terms + 1))
    return [int(d) for d in rng.integers(0, 10, size=terms)]


def draw_demonstration(rng: np.random.Generator, digits: list[int]) -> str:
    """A response to imitate, from the mixture of guesses and more or less worked answers."""
    shares = [share for share, _ in MIXTURE]
    write = MIXTURE[int(rng.choice(len(MIXTURE), p=shares))][1]
    return f">{sum(digits) % 10}" if write is None else worked(rng, digits, write, SLIP)


def worked(rng: np.random.Generator, digits: list[int], write: float, slip: float) -> str:
    """A worked answer that writes each sum with probability `write` and gets a written one wrong with `slip`."""
    running, text = digits[0], str(digits[0])
    for i, digit in enumerate(digits[1:], 1):
        running = (running + digit) % 10
        text += str(digit)
        last = i == len(digits) - 1
        if last or rng.random() < write:
            if rng.random() < slip:
                running = (running + int(rng.integers(1, 10))) % 10
            text += f">{running}" if last else f">{running},{running}"
    return text
