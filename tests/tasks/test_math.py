"""Training on problems with golds: order, grading and reward, files, the hub, and golds that cannot be used."""

import json
import logging
from collections import Counter

import pyarrow as pa
import pytest
from pyarrow import parquet

from delaysim.errors import UserError
from delaysim.grading import Grader, Verdict, make_gold
from delaysim.run.taskload import load_math
from delaysim.settings.tasks import Gsm8kConf, MathConf
from delaysim.tasks import Problem
from delaysim.tasks.math import MathTask


def task(train=10, test=3, format_reward=0.0, grader=None):
    problems = tuple(Problem(f"t/{i}", f"What is {i}?", str(i)) for i in range(train + test))
    golds = {problem.id: make_gold(problem.answer) for problem in problems}
    return MathTask(problems[:train], problems[train:], golds, format_reward, grader or Grader())


def graded(answer, response, finished=True, **named):
    named = task(**named)
    problem = Problem("p", "How many?", answer)
    named = MathTask((), (), {"p": make_gold(answer)}, named.format_reward, named.grader)
    return named.grade(problem, response, finished)


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def rows(count, first=0):
    return [{"id": f"r{i}", "problem": f"What is {i}?", "answer": str(i)} for i in range(first, first + count)]


def test_every_epoch_shows_every_problem_once():
    drawn = [task().training(0, group).id for group in range(30)]
    epochs = [drawn[start : start + 10] for start in (0, 10, 20)]
    assert all(sorted(epoch) == sorted(epochs[0]) for epoch in epochs)
    assert Counter(drawn) == {f"t/{i}": 3 for i in range(10)}
    assert epochs[0] != epochs[1] != epochs[2] != epochs[0]


def test_prompts_depend_on_seed_and_group_alone():
    forwards = [task().training(1, group) for group in range(25)]
    backwards = [task().training(1, group) for group in reversed(range(25))]
    assert forwards == backwards[::-1]
    assert forwards != [task().training(2, group) for group in range(25)]
    assert task().training(0, (1 << 40) + 7) == task().training(0, (1 << 40) + 7)


def test_held_out_problems_are_the_first_of_the_test_file():
    assert [problem.id for problem in task().held_out(2)] == ["t/10", "t/11"]
    with pytest.raises(UserError, match=r"evaluation\.problems=4, but only 3 held-out problems"):
        task().held_out(4)


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize(
    ("response", "reward", "status"),
    [
        (r"It is \boxed{18}.", 1.0, "correct"),
        (r"It is \boxed{\$18.00}.", 1.0, "correct"),
        ("#### 18", 1.0, "correct"),
        ("The answer is 18 dollars.", 1.0, "correct"),
        (r"It is \boxed{17}.", 0.1, "wrong"),
        (r"It is \boxed{eighteen thousand}.", 0.1, "wrong"),
        ("#### 17", 0.0, "wrong"),
        ("The answer is 17.", 0.0, "wrong"),
        (r"\boxed{18}, or \boxed{18", 0.0, None),
        (r"I fill in \boxed{}", 0.0, None),
        ("18", 0.0, None),
        ("", 0.0, None),
    ],
)
def test_rewards_are_strict(response, reward, status, finished):
    """1 for the right answer in a box or after its marker, the format reward for a wrong one in a box."""
    grade = graded("18", response, finished, format_reward=0.1)
    assert (grade.correct, grade.reward) == (reward == 1.0, reward)
    assert grade.status == (status or ("no_answer" if finished else "truncated"))


@pytest.mark.parametrize(
    ("gold", "right", "wrong"),
    [
        (r"\frac{3}{4}", "0.75", r"\frac{4}{3}"),
        (r"\left( 3, \frac{\pi}{2} \right)", r"(3, \pi/2)", r"(\pi/2, 3)"),
        (r"x^2+2x+1", r"(x+1)^2", r"(x-1)^2"),
        (r"\text{Evelyn}", "Evelyn", "Eve"),
    ],
)
def test_answers_of_math_are_compared_by_kind(gold, right, wrong):
    assert graded(gold, rf"So \boxed{{{right}}}.").reward == 1.0
    assert graded(gold, rf"So \boxed{{{wrong}}}.").reward == 0.0


def test_what_could_not_be_graded_earns_nothing():
    class Late:
        def grade(self, gold, response, finished):
            return Verdict("timeout", 0, "boxed", "18")

    grade = graded("18", r"\boxed{18}", format_reward=0.5, grader=Late())
    assert (grade.correct, grade.reward, grade.status) == (False, 0.0, "timeout")


def test_last_rows_are_kept_out_of_training(tmp_path):
    conf = Gsm8kConf(path=write(tmp_path / "sums.jsonl", rows(10)), instruction="Box it.")
    loaded = load_math(conf, 3)
    assert [problem.id for problem in loaded.train] == [f"r{i}" for i in range(7)]
    assert loaded.held_out(3)[0] == Problem("r7", "What is 7?", "7", "Box it.")


def test_no_evaluation_leaves_every_row_for_training(tmp_path):
    conf = Gsm8kConf(path=write(tmp_path / "sums.jsonl", rows(10)))
    assert len(load_math(conf, 0).train) == 10


def test_problems_of_the_evaluation_file_are_never_trained_on(tmp_path):
    train = write(tmp_path / "train.jsonl", rows(10))
    test = write(tmp_path / "test.jsonl", rows(4, first=8))
    loaded = load_math(Gsm8kConf(path=train, eval_path=test), 2)
    assert [problem.id for problem in loaded.train] == [f"r{i}" for i in range(8)]
    assert [problem.id for problem in loaded.held_out(2)] == ["r8", "r9"]


def test_numbers_may_be_answers_and_ids_may_lack(tmp_path):
    path = write(tmp_path / "sums.jsonl", [{"problem": "a", "answer": 18}, {"problem": "b", "answer": 0.5}])
    loaded = load_math(Gsm8kConf(path=path, instruction="!"), 1)
    assert (*loaded.train, *loaded.test) == (Problem("sums/1", "a", "18", "!"), Problem("sums/2", "b", "0.5", "!"))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"problem": "a", "answer": True}, r"line 2 \(sums/2\): the answer True is no text and no number"),
        ({"problem": "a", "answer": [1]}, r"line 2 \(sums/2\): the answer \[1\] is no text and no number"),
        ({"problem": 5, "answer": "1"}, r"line 2 \(sums/2\): the problem is not a text"),
        ({"question": "a", "answer": "1"}, r"line 2: no field 'problem'; the fields are question, answer"),
        ({"id": "r0", "problem": "a", "answer": "1"}, r"line 2: the id 'r0' stands twice"),
    ],
)
def test_bad_rows_are_named(tmp_path, bad, message):
    path = write(tmp_path / "sums.jsonl", [*rows(1), bad, *rows(5, first=1)])
    with pytest.raises(UserError, match=rf"sums\.jsonl, {message}$"):
        load_math(Gsm8kConf(path=path), 1)


@pytest.mark.parametrize("held_out", [5, 6])
def test_nothing_left_to_train_on(tmp_path, held_out):
    path = write(tmp_path / "sums.jsonl", rows(5))
    with pytest.raises(UserError, match="nothing is left to train on once 5 held-out problems are taken out"):
        load_math(Gsm8kConf(path=path), held_out)
    with pytest.raises(UserError, match="nothing is left to train on"):
        load_math(Gsm8kConf(path=path, eval_path=path), 1)


def test_too_few_held_out_problems_are_refused_at_load(tmp_path):
    train, test = write(tmp_path / "train.jsonl", rows(5)), write(tmp_path / "test.jsonl", rows(2, first=5))
    with pytest.raises(UserError, match=r"evaluation\.problems=3"):
        load_math(Gsm8kConf(path=train, eval_path=test), 3)


def test_a_gold_that_cannot_be_used_is_left_out_of_training_and_said(tmp_path, caplog):
    """Up to one in a hundred; above, and among held-out problems, the file is refused."""
    bad = {"id": "x7", "problem": "a", "answer": " "}
    path = write(tmp_path / "many.jsonl", [bad, *rows(200)])
    with caplog.at_level(logging.WARNING, "delaysim"):
        loaded = load_math(Gsm8kConf(path=path), 3)
    assert (len(loaded.train), "x7" in loaded.golds) == (197, False)
    assert "left out of training" in caplog.text
    assert "x7" in caplog.text
    few = write(tmp_path / "few.jsonl", [bad, *rows(20)])
    with pytest.raises(UserError, match=r"few\.jsonl, x7: .*\(1 of 18 rows\)"):
        load_math(Gsm8kConf(path=few), 3)
    held = write(tmp_path / "held.jsonl", [bad])
    with pytest.raises(UserError, match=r"held\.jsonl, x7: the answer ' ' cannot be used"):
        load_math(Gsm8kConf(path=few, eval_path=held), 1)


def test_without_a_file_the_hub_is_asked(tmp_path, monkeypatch):
    """Seven folders of MATH to train on, MATH500 held out; a problem of both is trained on in neither."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    math = [{"problem": f"m{i}", "solution": rf"so $\boxed{{\frac{{{i}}}{{7}}}}$"} for i in range(7500)]
    test = [{"unique_id": f"test/{i}", "problem": f"m{i}" if i < 2 else f"t{i}", "answer": "1"} for i in range(500)]
    names = ("EleutherAI--hendrycks_math", "HuggingFaceH4--MATH-500")
    snapshots = []
    for repository in (tmp_path / f"datasets--{name}" for name in names):
        (repository / "refs").mkdir(parents=True)
        (repository / "refs" / "main").write_text("a" * 40)
        snapshots.append(repository / "snapshots" / ("a" * 40))
        (snapshots[-1] / "algebra").mkdir(parents=True)
    parquet.write_table(pa.Table.from_pylist(math), snapshots[0] / "algebra" / "train-0.parquet")
    write(snapshots[1] / "test.jsonl", test)
    loaded = load_math(MathConf(), 500)
    assert (len(loaded.train), len(loaded.test)) == (7498, 500)
    assert loaded.train[0] == Problem("math/train/2", "m2", r"\frac{2}{7}", loaded.train[0].instruction)
    assert loaded.grade(loaded.train[1], r"\boxed{3/7}", True).reward == 1.0


def test_the_real_files_load(shared):
    train, test = (shared / "data" / f"{name}.jsonl" for name in ("gsm8k_train", "gsm8k"))
    loaded = load_math(Gsm8kConf(path=str(train), eval_path=str(test)), 1319)
    assert (len(loaded.train), len(loaded.test)) == (7473, 1319)
    assert all(loaded.grade(p, rf"\boxed{{{p.answer}}}", True).reward == 1.0 for p in loaded.test)
