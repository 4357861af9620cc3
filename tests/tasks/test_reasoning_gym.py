"""Problems of reasoning-gym: short prompts, answers that earn the full score, and the scorers' traps."""

import pytest

pytest.importorskip("reasoning_gym", reason="reasoning-gym is not installed: pip install 'delaysim[reasoning-gym]'")

from delaysim.errors import UserError
from delaysim.tasks.reasoning_gym import SHORT, ReasoningGym

OTHERS = ("letter_counting", "propositional_logic", "power_function", "number_sorting")
"""Data sets that ask their own question."""


@pytest.mark.parametrize("dataset", SHORT)
def test_prompts_are_short_and_their_answers_right(dataset):
    task = ReasoningGym(dataset)
    for group in range(20):
        problem = task.training(0, group)
        assert len(problem.prompt) <= 120
        assert "{" not in problem.prompt
        assert task.grade(problem, rf"So \boxed{{{problem.answer}}}.", True).reward == 1.0


@pytest.mark.parametrize("dataset", [*SHORT, *OTHERS])
@pytest.mark.parametrize("junk", ["", "junk", "[]", "1/0", "{", "None", "nan", "×"])
def test_junk_earns_nothing(dataset, junk):
    """Scorers give junk .01 or .05, and some raise."""
    task = ReasoningGym(dataset)
    for group in range(4):
        grade = task.grade(task.training(0, group), rf"\boxed{{{junk}}} and \boxed{{{junk}}}", True)
        assert (grade.correct, grade.reward) == (False, 0.0)


def test_partial_credit_is_no_credit():
    """`4 × 3` for `2 × 2 × 3` multiplies to 12, for which the package gives a part of the score."""
    task = ReasoningGym("prime_factorization", {"min_value": 12, "max_value": 12})
    problem = task.training(0, 0)
    assert problem.prompt == "Prime factors of 12, separated by ×?"
    assert task._score("4 × 3", 0, 0) not in (0.0, 1.0)
    assert task.grade(problem, r"\boxed{4 × 3}", True).reward == 0.0
    assert task.grade(problem, r"\boxed{2 × 2 × 3}", True).reward == 1.0


def test_without_a_marked_answer_there_is_none():
    task = ReasoningGym("gcd")
    problem = task.training(0, 0)
    assert task.grade(problem, problem.answer, True).status == "no_answer"
    assert task.grade(problem, problem.answer, False).status == "truncated"
    assert task.grade(problem, f"The answer is {problem.answer}.", True).correct


def test_seeds_do_not_share_problems():
    """In the package problem i of seed s is problem i-1 of seed s+1."""
    task = ReasoningGym("chain_sum", {"min_digits": 4, "max_digits": 4})
    prompts = [{task.training(seed, group).prompt for group in range(40)} for seed in (0, 1)]
    assert not prompts[0] & prompts[1]
    assert task.training(1, 7) == ReasoningGym("chain_sum", {"min_digits": 4, "max_digits": 4}).training(1, 7)
    assert len({problem.id for problem in task.held_out(9)}) == 9


def test_settings_reach_the_data_set():
    task = ReasoningGym("chain_sum", {"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 1})
    assert all(len(task.training(0, group).prompt.split()) == 4 for group in range(20))


@pytest.mark.parametrize(
    ("dataset", "settings", "message"),
    [
        ("chainsum", {}, "task.dataset=chainsum: reasoning-gym has none of this name; try chain_sum"),
        ("chain_sum", {"terms": 3}, 'task.settings={"terms": 3}: '),
        ("chain_sum", {"min_terms": 5, "max_terms": 2}, 'task.settings={"max_terms": 2, "min_terms": 5}: '),
    ],
)
def test_what_is_not_there_is_named(dataset, settings, message):
    with pytest.raises(UserError) as error:
        ReasoningGym(dataset, settings)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)
