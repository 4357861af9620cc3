"""A task in a user's own file: run ids, settings, the example, and every bad file in one line."""

from pathlib import Path

import pytest
from settings import make_config

from delaysim.errors import RunFailed, UserError
from delaysim.run.taskload import load_task
from delaysim.run.usertask import load_user_task
from delaysim.settings.configfile import load_config, save_config
from delaysim.settings.identity import run_id
from delaysim.tasks import Grade, Problem

EXAMPLE = Path(__file__).parents[2] / "examples" / "tasks" / "words.py"
WHOLE = """from delaysim.tasks import Grade, Problem


class Task:
    def __init__(self, size=3):
        self.size = size

    def training(self, seed, group):
        return Problem(f"p{group}", f"{seed}/{group % self.size}", "1")

    def held_out(self, count):
        return [Problem(f"h{i}", str(i), "1") for i in range(count)]

    def grade(self, problem, response, finished):
        return Grade(response == problem.answer, float(response))
"""


def write(tmp_path, text=WHOLE, name="mine.py"):
    path = tmp_path / name
    path.write_text(text)
    return path


def refused(error, call, *arguments):
    with pytest.raises(error) as caught:
        call(*arguments)
    message = str(caught.value)
    assert "\n" not in message
    return message


def custom(path, *overrides):
    return make_config("model=pretrained", "model.path=org/some", "D=2", "task=custom", f"task.path={path}", *overrides)


def test_a_file_is_a_task(tmp_path):
    task = load_task(custom(write(tmp_path), "+task.settings.size=2"))
    assert task.training(4, 5) == Problem("p5", "4/1", "1")
    assert [problem.id for problem in task.held_out(2)] == ["h0", "h1"]
    assert task.grade(task.held_out(1)[0], "1", True) == Grade(True, 1.0)


def test_the_example_rewards_letters_in_their_place():
    task = load_user_task(EXAMPLE, {"longest": 4})
    assert all(len(task.training(0, group).answer) <= 4 for group in range(30))
    problem = Problem("p", "Spell the word moon backwards.", "noom")
    rewards = [task.grade(problem, text, True).reward for text in ("noom", "Noom.", "moon", "n", "noomnoom", "")]
    assert rewards == [1.0, 1.0, 0.5, 0.25, 0.5, 0.0]
    assert task.grade(problem, "noom", False) == Grade(False, 0.0)
    assert len({problem.id for problem in task.held_out(40)}) == 40


def test_the_run_id_follows_the_bytes_and_the_settings(tmp_path):
    path = write(tmp_path)
    before = run_id(custom(path))
    assert "-mine-s0-" in before
    assert run_id(custom(write(tmp_path, name="other.py"))).rpartition("-")[2] == before.rpartition("-")[2]
    assert run_id(custom(path, "+task.settings.size=2")) != before
    assert run_id(custom(path, "+task.settings.size=2")) == run_id(custom(path, "+task.settings.size=2.0"))
    write(tmp_path, WHOLE + "# changed\n")
    assert run_id(custom(path)) != before


def test_settings_survive_the_runs_own_file(tmp_path):
    cfg = custom(write(tmp_path), "+task.settings.size=2")
    save_config(cfg, tmp_path / "config.yaml")
    assert load_config(tmp_path / "config.yaml").task == cfg.task


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = (", "mine.py, line 1: SyntaxError"),
        ("import nothing_of_this_name", "mine.py, line 1: ModuleNotFoundError: No module named"),
        ("Task = 3\n", "mine.py: define a class Task; docs/tasks.md shows a whole file"),
        (WHOLE.replace("def grade", "def judge"), "mine.py: its Task has no method grade"),
        (WHOLE.replace("self.size = size", "raise ValueError('bad')"), "mine.py, line 6: Task(): bad"),
    ],
)
def test_bad_files_are_named(tmp_path, text, message):
    assert message in refused(UserError, load_user_task, write(tmp_path, text), {})


def test_wrong_settings_and_missing_files_are_named(tmp_path):
    message = refused(UserError, load_user_task, write(tmp_path), {"length": 3})
    assert message.startswith(f"{tmp_path / 'mine.py'}: Task(length=3): ")
    assert "is not a file: give the path of a Python file with a class Task" in refused(
        UserError, load_user_task, tmp_path / "none.py", {}
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'return Problem(f"p{group}", f"{seed}/{group % self.size}", "1")',
            "return 5",
            "training() gave a int; return",
        ),
        ('return Problem(f"p{group}"', "return Problem(1 / 0", "mine.py, line 9: ZeroDivisionError in training(): div"),
        ("return Grade(response == problem.answer, float(response))", "return 1.0", "grade() gave a float; return a"),
    ],
)
def test_what_goes_wrong_in_a_run_names_the_line(tmp_path, old, new, message):
    task = load_user_task(write(tmp_path, WHOLE.replace(old, new)), {})

    def use():
        task.grade(task.training(0, 0), "1", True)

    assert message in refused(RunFailed, use)
    assert "line 15: ValueError in grade()" in refused(
        RunFailed, load_user_task(write(tmp_path), {}).grade, Problem("p", "a", "1"), "x", True
    )


def test_held_out_problems_are_as_many_as_asked_and_differ(tmp_path):
    short = load_user_task(write(tmp_path, WHOLE.replace("range(count)", "range(2)")), {})
    assert "held_out(3) gave 2 problems; set evaluation.problems" in refused(UserError, short.held_out, 3)
    alike = load_user_task(write(tmp_path, WHOLE.replace('f"h{i}"', '"h"')), {})
    assert "gave two problems with one id" in refused(UserError, alike.held_out, 2)
