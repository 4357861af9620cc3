"""A task in a file of the user's: found, checked, and its errors told in one line. No torch."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from delaysim.errors import RunFailed, UserError
from delaysim.settings.chosen import import_file, where
from delaysim.tasks import Grade, Problem

METHODS = ("training", "held_out", "grade")


@dataclass(frozen=True)
class UserTask:
    """The task of a user's file; what it returns is checked, what it raises names file and line."""

    path: Path
    task: Any

    def training(self, seed: int, group: int) -> Problem:
        return self._problem("training", self._call("training", seed, group))

    def held_out(self, count: int) -> tuple[Problem, ...]:
        found = tuple(self._problem("held_out", problem) for problem in self._call("held_out", count))
        if len(found) != count:
            raise UserError(f"{self.path}: held_out({count}) gave {len(found)} problems; set evaluation.problems")
        if len({problem.id for problem in found}) < count:
            raise UserError(f"{self.path}: held_out({count}) gave two problems with one id")
        return found

    def grade(self, problem: Problem, response: str, finished: bool) -> Grade:
        grade = self._call("grade", problem, response, finished)
        if not isinstance(grade, Grade):
            raise RunFailed(f"{self.path}: grade() gave {_kind(grade)}; return a delaysim.tasks.Grade")
        return grade

    def _problem(self, method: str, problem: Any) -> Problem:
        if not isinstance(problem, Problem) or not isinstance(problem.prompt, str):
            raise RunFailed(f"{self.path}: {method}() gave {_kind(problem)}; return a delaysim.tasks.Problem")
        return problem

    def _call(self, method: str, *arguments: Any) -> Any:
        try:
            return getattr(self.task, method)(*arguments)
        except Exception as error:
            text = " ".join(str(error).split())
            raise RunFailed(f"{where(error, self.path)}: {type(error).__name__} in {method}(): {text}") from error


def load_user_task(path: Path, settings: dict[str, Any]) -> UserTask:
    """The class Task of a file, made with `settings`. Raises UserError that names the file and what is wrong."""
    cls = getattr(import_file(path, "a class Task"), "Task", None)
    if not isinstance(cls, type):
        raise UserError(f"{path}: define a class Task; docs/tasks.md shows a whole file")
    for method in METHODS:
        if not callable(getattr(cls, method, None)):
            raise UserError(f"{path}: its Task has no method {method}; docs/tasks.md says what it is for")
    try:
        return UserTask(path, cls(**settings))
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{where(error, path)}: Task({_given(settings)}): {error}") from error


def _given(settings: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value!r}" for key, value in settings.items())


def _kind(value: Any) -> str:
    return f"a {type(value).__name__}"
