"""Generated problems of the package reasoning-gym, with shorter prompts. The package is imported where it is needed.

Its questions take up to 420 characters, its scorers hand out partial credit for junk and some raise: here a problem is
asked from its metadata where a short form stands below, and only a score of exactly 1 counts.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from delaysim.errors import UserError
from delaysim.grading.extract import extract
from delaysim.rng import stream
from delaysim.tasks.base import Grade, Problem

HELD_OUT_SEED = 99_997
SIZE = 1_000_000_000
"""Problems in a data set; each is generated when it is asked for."""
SHORT = {
    "base_conversion": "Write {source_repr} (base {source_base}) in base {target_base}.",
    "basic_arithmetic": "{expression} =",
    "chain_sum": "{expression} =",
    "count_bits": "How many ones has {number} in binary?",
    "fraction_simplification": "Simplify {numerator}/{denominator}.",
    "gcd": "Greatest common divisor of {numbers}?",
    "lcm": "Least common multiple of {numbers}?",
    "prime_factorization": "Prime factors of {number}, separated by ×?",
    "products": "{expression} =",
    "simple_equations": "Solve for {variable}: {equation}",
}
"""Prompts from a problem's metadata; a data set that is not here asks its own question."""


@dataclass(frozen=True)
class ReasoningGym:
    """One data set of the package, by its name there."""

    dataset: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the data set, as the package names them."""
    instruction: str = ""

    def __post_init__(self) -> None:
        """Raise UserError where the package, the data set or a setting is not there."""
        self._problem("test", HELD_OUT_SEED, 0)

    def training(self, seed: int, group: int) -> Problem:
        return self._problem("train", seed, group)

    def held_out(self, count: int) -> tuple[Problem, ...]:
        return tuple(self._problem("test", HELD_OUT_SEED, i) for i in range(count))

    def grade(self, problem: Problem, response: str, finished: bool) -> Grade:
        """1 where the package gives the answer in the box, or after its marker, the full score."""
        answer = extract(response)
        if answer is None:
            return Grade(False, 0.0, "no_answer" if finished else "truncated")
        seed, index = problem.id.split("/")[-2:]
        correct = self._score(answer.text.strip("$ "), int(seed), int(index)) == 1.0
        return Grade(correct, float(correct), "correct" if correct else "wrong")

    def _problem(self, part: str, seed: int, index: int) -> Problem:
        entry = self._entry(seed, index)
        return Problem(
            f"{self.dataset}/{part}/{seed}/{index}", self._prompt(entry), str(entry["answer"]), self.instruction
        )

    def _prompt(self, entry: Mapping[str, Any]) -> str:
        short = SHORT.get(self.dataset)
        if short is None:
            return str(entry["question"])
        metadata = entry["metadata"]
        values = {key: ", ".join(map(str, v)) if isinstance(v, list) else v for key, v in metadata.items()}
        return short.format_map(values)

    def _score(self, answer: str, seed: int, index: int) -> float:
        try:
            return float(self._made(seed).score_answer(answer, self._entry(seed, index)))
        except Exception:  # some scorers raise on a text that is no answer
            return 0.0

    def _entry(self, seed: int, index: int) -> Mapping[str, Any]:
        entry: Mapping[str, Any] = self._made(seed)[index]
        return entry

    def _made(self, seed: int) -> Any:
        return _made(self.dataset, json.dumps(dict(self.settings), sort_keys=True), seed)


@lru_cache(maxsize=8)
def _made(name: str, settings: str, seed: int) -> Any:
    """The package's data set; its own seed is drawn, since problem i of seed s is there problem i-1 of seed s+1."""
    gym = _package()
    drawn = int(stream(seed, "reasoning_gym").integers(2**31))
    try:
        return gym.create_dataset(name, **{"size": SIZE, "seed": drawn, **json.loads(settings)})
    except ValueError as error:
        if "not registered" not in str(error):
            raise UserError(f"task.settings={settings}: {error}") from error
        near = get_close_matches(name, gym.factory.DATASETS, 3) or sorted(SHORT)
        raise UserError(f"task.dataset={name}: reasoning-gym has none of this name; try {', '.join(near)}") from error
    except (TypeError, AssertionError) as error:
        raise UserError(f"task.settings={settings}: {error or 'refused by reasoning-gym'}") from error


def _package() -> Any:
    try:
        import reasoning_gym
    except ImportError as error:
        raise UserError(
            f"task=reasoning_gym: {error}; install it with pip install 'delaysim[reasoning-gym]'"
        ) from error
    return reasoning_gym
