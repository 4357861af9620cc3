"""Spell a word backwards: `tac` for `cat`. Partial reward for every letter in its place."""

from dataclasses import dataclass

from delaysim.rng import stream
from delaysim.tasks import Grade, Problem

WORDS = "cat dog sun tree bird fish moon stone river green apple bread chair cloud"
EXAMPLES = (("Spell the word sea backwards.", "aes"), ("Spell the word book backwards.", "koob"))


@dataclass(frozen=True)
class Task:
    """Words of up to `longest` letters; fields are set by +task.settings.longest=4."""

    longest: int = 5

    def training(self, seed, group):
        """The problem of one group. It may depend on seed and group alone."""
        rng = stream(seed, "prompt", group)
        return self._problem(f"words/train/{group}", self._words()[rng.integers(len(self._words()))])

    def held_out(self, count):
        """`count` evaluation problems. They do not depend on any seed."""
        words = self._words()
        return [self._problem(f"words/test/{i}", words[i % len(words)]) for i in range(count)]

    def grade(self, problem, response, finished):
        """Grade a response; `finished`: it ended with a stop token, not at the length limit."""
        said = response.strip().strip(".").lower()
        placed = sum(a == b for a, b in zip(said, problem.answer, strict=False))
        share = placed / max(len(said), len(problem.answer))
        return Grade(correct=finished and said == problem.answer, reward=share if finished else 0.0)

    def _words(self):
        return [word for word in WORDS.split() if len(word) <= self.longest]

    def _problem(self, name, word):
        return Problem(name, f"Spell the word {word} backwards.", word[::-1], examples=EXAMPLES)
