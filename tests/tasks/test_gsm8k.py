import json
from collections import Counter

import pytest
from delaysim.tasks.gsm8k import Gsm8k

from delaysim.errors import UserError
from delaysim.run.taskload import load_gsm8k
from delaysim.settings.tasks import Gsm8kConf
from delaysim.tasks import Grade, Problem

PROBLEM = Problem("p", "How many?\nBox it.", "18")


def task(train=10, test=3, format_reward=0.0):
    problems = tuple(Problem(f"t/{i}", f"What is {i}?", str(i)) for i in range(train + test))
    return Gsm8k(problems[:train], problems[train:], format_reward)


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
    ("response", "grade"),
    [
        (r"It is \boxed{18}.", Grade(True, 1.0)),
        (r"It is \boxed{\$18.00}.", Grade(True, 1.0)),
        ("#### 18", Grade(True, 1.0)),
        ("The answer is 18 dollars.", Grade(True, 1.0)),
        (r"It is \boxed{17}.", Grade(False, 0.1)),
        (r"It is \boxed{eighteen}.", Grade(False, 0.1)),
        ("#### 17", Grade(False, 0.0)),
        ("The answer is 17.", Grade(False, 0.0)),
        (r"\boxed{18}, or \boxed{18", Grade(False, 0.0)),
        (r"I fill in \boxed{}", Grade(False, 0.0)),
        ("18", Grade(False, 0.0)),
        ("", Grade(False, 0.0)),
    ],
)
def test_grades(response, grade, finished):
    assert task(format_reward=0.1).grade(PROBLEM, response, finished) == grade


def test_last_rows_are_kept_out_of_training(tmp_path):
    conf = Gsm8kConf(path=write(tmp_path / "sums.jsonl", rows(10)), instruction="Box it.")
    loaded = load_gsm8k(conf, 3)
    assert [problem.id for problem in loaded.train] == [f"r{i}" for i in range(7)]
    assert loaded.held_out(3)[0] == Problem("r7", "What is 7?\nBox it.", "7")


def test_no_evaluation_leaves_every_row_for_training(tmp_path):
    conf = Gsm8kConf(path=write(tmp_path / "sums.jsonl", rows(10)))
    assert len(load_gsm8k(conf, 0).train) == 10


def test_problems_of_the_evaluation_file_are_never_trained_on(tmp_path):
    train = write(tmp_path / "train.jsonl", rows(10))
    test = write(tmp_path / "test.jsonl", rows(4, first=8))
    loaded = load_gsm8k(Gsm8kConf(path=train, eval_path=test), 2)
    assert [problem.id for problem in loaded.train] == [f"r{i}" for i in range(8)]
    assert [problem.id for problem in loaded.held_out(2)] == ["r8", "r9"]


def test_numbers_may_be_answers_and_ids_may_lack(tmp_path):
    path = write(tmp_path / "sums.jsonl", [{"problem": "a", "answer": 18}, {"problem": "b", "answer": 0.5}])
    loaded = load_gsm8k(Gsm8kConf(path=path, instruction="!"), 1)
    assert (*loaded.train, *loaded.test) == (Problem("sums/1", "a\n!", "18"), Problem("sums/2", "b\n!", "0.5"))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"id": "x7", "problem": "a", "answer": "two"}, r"line 2 \(x7\): the answer 'two' is not a plain number"),
        ({"problem": "a", "answer": True}, r"line 2 \(sums/2\): the answer 'True' is not a plain number"),
        ({"problem": "a", "answer": [1]}, r"line 2 \(sums/2\): the answer '\[1\]' is not a plain number"),
        ({"problem": 5, "answer": "1"}, r"line 2 \(sums/2\): the problem is not a text"),
        ({"question": "a", "answer": "1"}, r"line 2: no field 'problem'; the fields are question, answer"),
        ({"id": "r0", "problem": "a", "answer": "1"}, r"line 2: the id 'r0' stands twice"),
    ],
)
def test_bad_rows_are_named(tmp_path, bad, message):
    path = write(tmp_path / "sums.jsonl", [*rows(1), bad, *rows(5, first=1)])
    with pytest.raises(UserError, match=rf"sums\.jsonl, {message}$"):
        load_gsm8k(Gsm8kConf(path=path), 1)


@pytest.mark.parametrize("held_out", [5, 6])
def test_nothing_left_to_train_on(tmp_path, held_out):
    path = write(tmp_path / "sums.jsonl", rows(5))
    with pytest.raises(UserError, match="nothing is left to train on once 5 held-out problems are taken out"):
        load_gsm8k(Gsm8kConf(path=path), held_out)
    with pytest.raises(UserError, match="nothing is left to train on"):
        load_gsm8k(Gsm8kConf(path=path, eval_path=path), 1)


def test_too_few_held_out_problems_are_refused_at_load(tmp_path):
    train, test = write(tmp_path / "train.jsonl", rows(5)), write(tmp_path / "test.jsonl", rows(2, first=5))
    with pytest.raises(UserError, match=r"evaluation\.problems=3"):
        load_gsm8k(Gsm8kConf(path=train, eval_path=test), 3)


def test_the_real_files_load(shared):
    train, test = (shared / "data" / f"{name}.jsonl" for name in ("gsm8k_train", "gsm8k"))
    loaded = load_gsm8k(Gsm8kConf(path=str(train), eval_path=str(test)), 1319)
    assert (len(loaded.train), len(loaded.test)) == (7473, 1319)
    assert all(loaded.grade(p, rf"\boxed{{{p.answer}}}", True) == Grade(True, 1.0) for p in loaded.test)
