"""The task a configuration names, with its files read. No torch."""

from pathlib import Path
from typing import Any

from delaysim.data import read_jsonl
from delaysim.errors import UserError
from delaysim.grading.numbers import number
from delaysim.settings.config import ChainConf, Config, Gsm8kConf
from delaysim.tasks import Task
from delaysim.tasks.base import Problem
from delaysim.tasks.chain import Chain
from delaysim.tasks.gsm8k import Gsm8k


def load_task(cfg: Config) -> Task:
    """Build the task and read its files. Raises UserError on a file that is missing or malformed."""
    if isinstance(cfg.task, ChainConf):
        return Chain(cfg.task.min_terms, cfg.task.max_terms)
    return load_gsm8k(cfg.task, cfg.evaluation.problems)


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
