import pytest

from delaysim.grading import Grader, make_gold


@pytest.fixture(scope="session")
def grader():
    with Grader() as grader:
        yield grader


def _decided(verdict):
    assert verdict.status in ("correct", "wrong", "no_answer"), verdict
    assert verdict.score == (verdict.status == "correct")
    return verdict.score == 1


@pytest.fixture(scope="session")
def accepts(grader):
    """Whether an answer in a box is right for a gold."""
    return lambda gold, answer, **row: _decided(grader.grade(make_gold(gold, **row), rf"So \boxed{{{answer}}}."))


@pytest.fixture(scope="session")
def accepts_response(grader):
    """Whether a response is right for a gold, wherever its answer stands."""
    return lambda gold, response: _decided(grader.grade(make_gold(gold), response, mode="flexible"))
