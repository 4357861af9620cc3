"""Short sums in words: the words, the answers, what counts as right, and the distribution of problems."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delaysim.tasks import Problem
from delaysim.tasks.sums import SHOWN, Sums, question, word, worked

VALUES = {word(n): n for n in range(100)}


def test_words_are_english_and_all_different():
    assert [word(n) for n in (0, 7, 13, 20, 21, 40, 99)] == [
        "zero", "seven", "thirteen", "twenty", "twenty-one", "forty", "ninety-nine",
    ]  # fmt: skip
    assert len(VALUES) == 100


@given(st.integers(0, 50), st.integers(0, 500), st.integers(2, 4), st.integers(0, 5), st.integers(1, 99))
def test_the_answer_is_the_sum_of_the_words(seed, group, low, more, largest):
    problem = Sums(low, low + more, largest).training(seed, group)
    terms = [VALUES[name] for name in problem.prompt.removeprefix("What is ").removesuffix("?").split(" plus ")]
    assert low <= len(terms) <= low + more
    assert all(1 <= term <= largest for term in terms)
    assert problem.answer == str(sum(terms))


@pytest.mark.parametrize(
    ("response", "right"),
    [
        ("7 + 12 = 19", True),
        ("19", True),
        ("The answer is 19.", True),
        ("7 + 12 = 019", True),
        ("19 or 20", False),
        ("7 + 12 = 20", False),
        ("nineteen", False),
        ("119", False),
        ("", False),
    ],
)
def test_the_last_number_counts_once_the_response_has_ended(response, right):
    problem = Problem("p", "What is seven plus twelve?", "19")
    assert Sums().grade(problem, response, True).reward == float(right)
    assert not Sums().grade(problem, response, False).correct


def test_problems_depend_on_seed_and_group_and_held_out_ones_on_neither():
    task = Sums()
    assert task.training(3, 5) == task.training(3, 5) != task.training(4, 5)
    assert task.held_out(6)[:3] == task.held_out(3)
    prompts = {task.training(0, group).prompt for group in range(400)}
    assert 230 < len(prompts) < 275, "400 draws from 400 equally likely sums show about 253 of them"


def test_examples_are_worked_as_graded():
    for (asked, answer), terms in zip(SHOWN, ((2, 1), (6, 15), (7, 2, 4)), strict=True):
        assert (asked, answer) == (question(terms), worked(terms))
        assert Sums().grade(Problem("p", asked, str(sum(terms))), answer, True).correct
    assert Sums().held_out(1)[0].examples == SHOWN
