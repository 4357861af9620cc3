"""Responses that could not be graded: counted in launches, reward 0, and a run that ends above one in a hundred."""

import pytest
from settings import rows, run, small_config

from delaysim.run import taskload
from delaysim.tasks import Grade
from delaysim.tasks.base import too_many_ungraded
from delaysim.tasks.chain import Chain


def failing_on(share):
    """A chain task whose grading times out on problems with an answer below 10 * share."""

    class Failing(Chain):
        def grade(self, problem, response, finished):
            if int(problem.answer) < 10 * share and "/train/" in problem.id:
                return Grade(False, 0.0, "timeout")
            return super().grade(problem, response, finished)

    return Failing


@pytest.mark.parametrize(
    ("failed", "total", "ends"),
    [(9, 9, False), (10, 10, True), (10, 1000, False), (11, 1000, True), (0, 0, False), (200, 10_000, True)],
)
def test_the_rule(failed, total, ends):
    assert too_many_ungraded(failed, total) is ends


def test_a_run_whose_grading_fails_ends_and_says_so(base_cache, tmp_path, monkeypatch):
    monkeypatch.setattr(taskload, "Chain", failing_on(1))
    ended = run(small_config("D=2", "evaluation.every=null"), tmp_path / "run")
    assert (ended.state, ended.exit_code) == ("failed", 1)
    counts = [row["ungraded"] for row in rows(tmp_path / "run", "launches")]
    assert counts == [4] * len(counts)
    said = f"the grading of {sum(counts)} of {sum(counts)} responses timed out or died"
    assert ended.message.startswith(said)
    assert sum(counts) - 4 < 10, "it ends with the first launch that shows it"


def test_a_healthy_run_counts_none(base_cache, tmp_path):
    assert run(small_config("D=1", "updates=2", "evaluation.every=null"), tmp_path / "run").state == "done"
    assert {row["ungraded"] for row in rows(tmp_path / "run", "launches")} == {0}
    assert {row["status"] for row in rows(tmp_path / "run", "evals")} <= {"correct", "wrong"}
