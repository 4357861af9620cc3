"""The task a configuration names, with its files read. No torch."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from delaysim.benchmarks.load import from_hub, gold_of
from delaysim.benchmarks.sets import SETS
from delaysim.data import read_jsonl
from delaysim.errors import UserError
from delaysim.grading.golds import Gold
from delaysim.grading.grader import Grader
from delaysim.run.usertask import load_user_task
from delaysim.settings.config import Config
from delaysim.settings.tasks import ChainConf, CustomTaskConf, Gsm8kConf, ReasoningGymConf, SumsConf
from delaysim.tasks import Task
from delaysim.tasks.base import Problem
from delaysim.tasks.chain import Chain
from delaysim.tasks.math import MathTask
from delaysim.tasks.reasoning_gym import ReasoningGym
from delaysim.tasks.sums import Sums

HUB = {"gsm8k": ("gsm8k_train", "gsm8k"), "math": ("math_train", "math500")}
"""Sets to train on and to hold out, by `task.kind`, where no file is given."""
UNUSABLE = 0.01
"""Largest share of training problems whose gold answer cannot be used; they are left out."""
log = logging.getLogger("delaysim")


def load_task(cfg: Config) -> Task:
    """Build the task and read its files. Raises UserError on a file that is missing or malformed."""
    conf = cfg.task
    if isinstance(conf, ChainConf):
        return Chain(conf.min_terms, conf.max_terms)
    if isinstance(conf, SumsConf):
        return Sums(conf.min_terms, conf.max_terms, conf.largest)
    if isinstance(conf, ReasoningGymConf):
        return ReasoningGym(conf.dataset, conf.settings, conf.instruction)
    if isinstance(conf, CustomTaskConf):
        return load_user_task(Path(conf.path), dict(conf.settings))
    return load_math(conf, cfg.evaluation.problems)


def load_math(conf: Gsm8kConf, held_out: int) -> MathTask:
    """The task from its files. Problems that are held out are not trained on. Raises UserError on bad files."""
    rows, test_rows = _rows(conf, held_out)
    where = conf.path or SETS[HUB[conf.kind][0]].hub.id
    held = {row["problem"] for row in test_rows}
    usable = _usable(where, [row for row in rows if row["problem"] not in held])
    if not usable:
        raise UserError(f"{where}: nothing is left to train on once {len(test_rows)} held-out problems are taken out")
    test = [(row, gold_of(conf.eval_path or where, row)) for row in test_rows]
    task = MathTask(
        train=tuple(_problem(row, conf.instruction) for row, _ in usable),
        test=tuple(_problem(row, conf.instruction) for row, _ in test),
        golds={row["id"]: gold for row, gold in [*usable, *test]},
        format_reward=conf.format_reward,
        grader=Grader(workers=conf.workers),
    )
    task.held_out(held_out)
    return task


def _rows(conf: Gsm8kConf, held_out: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows to train on and rows to hold out."""
    if conf.path is None:
        train, test = (from_hub(SETS[name].hub) for name in HUB[conf.kind])
        return train, test if conf.eval_path is None else _from_file(conf.eval_path)
    rows = _from_file(conf.path)
    if conf.eval_path is not None:
        return rows, _from_file(conf.eval_path)
    kept = max(0, len(rows) - held_out)
    return rows[:kept], rows[kept:]


def _from_file(path: str) -> list[dict[str, Any]]:
    rows, seen = read_jsonl(path, ("problem", "answer")), set()
    for line, row in enumerate(rows, 1):
        row["id"] = str(row.get("id", f"{Path(path).stem}/{line}"))
        if not isinstance(row["problem"], str):
            raise UserError(f"{path}, line {line} ({row['id']}): the problem is not a text")
        if isinstance(row["answer"], bool | list | dict):
            raise UserError(f"{path}, line {line} ({row['id']}): the answer {row['answer']!r} is no text and no number")
        if row["id"] in seen:
            raise UserError(f"{path}, line {line}: the id {row['id']!r} stands twice")
        row["answer"] = str(row["answer"])
        seen.add(row["id"])
    return rows


def _usable(where: str, rows: Sequence[dict[str, Any]]) -> list[tuple[dict[str, Any], Gold]]:
    """Rows with their golds, but for the few whose gold cannot be used."""
    found: list[tuple[dict[str, Any], Gold]] = []
    errors: list[UserError] = []
    for row in rows:
        try:
            found.append((row, gold_of(where, row)))
        except UserError as refusal:
            errors.append(refusal)
    if len(errors) > UNUSABLE * len(rows):
        raise UserError(f"{errors[0]} ({len(errors)} of {len(rows)} rows)") from errors[0]
    for error in errors:
        log.warning("left out of training: %s", error)
    return found


def _problem(row: dict[str, Any], instruction: str) -> Problem:
    return Problem(row["id"], row["problem"], row["answer"], instruction)
