"""Grade-school word problems whose answer is one number, from the user's JSON-lines files."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delaysim.config import Gsm8kConf
from delaysim.data import read_jsonl
from delaysim.errors import UserError
from delaysim.rng import stream
from delaysim.tasks.answers import extract, number, same_number
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


def load_gsm8k(conf: Gsm8kConf, held_out: int) -> Gsm8k:
    """The task from its files. Problems that are held out are not trained on. Raises UserError on bad files."""
    problems = _problems(conf.path, conf.instruction)
    if conf.eval_path is None:
        kept = max(0, len(problems) - held_out)
        problems, test = problems[:kept], problems[kept:]
    else:
        test = _problems(conf.eval_path, conf.instruction)
    held = {problem.prompt for problem in test}
    task = Gsm8k(tuple(p for p in problems if p.prompt not in held), tuple(test), conf.format_reward)
    if not task.train:
        raise UserError(f"{conf.path}: nothing is left to train on once {len(test)} held-out problems are taken out")
    task.held_out(held_out)
    return task


@lru_cache(maxsize=8)
def _order(seed: int, epoch: int, count: int) -> NDArray[np.int64]:
    return stream(seed, "prompt_order", epoch).permutation(count)


def _problems(path: str, instruction: str) -> list[Problem]:
    rows = read_jsonl(path, ("problem", "answer"))
    problems = [_problem(path, line, row, instruction) for line, row in enumerate(rows, 1)]
    seen: set[str] = set()
    for line, problem in enumerate(problems, 1):
        if problem.id in seen:
            raise UserError(f"{path}, line {line}: the id {problem.id!r} stands twice")
        seen.add(problem.id)
    return problems


def _problem(path: str, line: int, row: dict[str, Any], instruction: str) -> Problem:
    name = str(row.get("id", f"{Path(path).stem}/{line}"))
    gold = str(row["answer"])
    if not isinstance(row["problem"], str):
        raise UserError(f"{path}, line {line} ({name}): the problem is not a text")
    if isinstance(row["answer"], bool) or number(gold) is None:
        raise UserError(f"{path}, line {line} ({name}): the answer {gold!r} is not a plain number")
    return Problem(name, f"{row['problem']}\n{instruction}", gold)
