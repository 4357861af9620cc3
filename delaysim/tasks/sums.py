"""Short sums in words: `What is seven plus twelve?` has the answer 19. A small chat model earns reward on it.

Three examples answer in the form `7 + 12 = 19`. A response is right iff it stops and the last number in it, in digits,
is the sum.
"""

import re
from dataclasses import dataclass

import numpy as np

from delaysim.rng import stream
from delaysim.tasks.base import Grade, Problem

HELD_OUT_SEED = 99_998
EXAMPLES = ((2, 1), (6, 15), (7, 2, 4))
_SMALL = """zero one two three four five six seven eight nine ten
eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"""
SMALL = _SMALL.split()
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
NUMBER = re.compile(r"[0-9]+")
LARGEST = 99


@dataclass(frozen=True)
class Sums:
    """Sums of min_terms..max_terms numbers from 1 to `largest`, uniformly."""

    min_terms: int = 2
    max_terms: int = 2
    largest: int = 20

    def training(self, seed: int, group: int) -> Problem:
        return self._problem(stream(seed, "prompt", group), f"sums/train/{group}")

    def held_out(self, count: int) -> tuple[Problem, ...]:
        return tuple(self._problem(stream(HELD_OUT_SEED, "held_out", i), f"sums/test/{i}") for i in range(count))

    def grade(self, problem: Problem, response: str, finished: bool) -> Grade:
        numbers = NUMBER.findall(response)
        correct = finished and bool(numbers) and numbers[-1].lstrip("0") == problem.answer
        return Grade(correct, float(correct))

    def _problem(self, rng: np.random.Generator, name: str) -> Problem:
        count = int(rng.integers(self.min_terms, self.max_terms + 1))
        terms = [int(term) for term in rng.integers(1, self.largest + 1, size=count)]
        return Problem(name, question(terms), str(sum(terms)), examples=SHOWN)


def question(terms: list[int] | tuple[int, ...]) -> str:
    """The sum in words."""
    return f"What is {' plus '.join(map(word, terms))}?"


def worked(terms: list[int] | tuple[int, ...]) -> str:
    """The sum as a response writes it."""
    return f"{' + '.join(map(str, terms))} = {sum(terms)}"


def word(number: int) -> str:
    """A number from 0 to 99 in words."""
    if number < len(SMALL):
        return SMALL[number]
    tens, ones = divmod(number, 10)
    return TENS[tens - 2] + (f"-{SMALL[ones]}" if ones else "")


SHOWN = tuple((question(terms), worked(terms)) for terms in EXAMPLES)
