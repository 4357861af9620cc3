import numpy as np
import pytest

from delaysim.rng import stream
from delaysim.tasks import Grade, Problem
from delaysim.tasks.chain import CHARACTERS, MIXTURE, Chain, draw_demonstration, draw_digits, worked


class Coin:
    """Stands in for a generator: writes or skips the sums of an answer in a given order, and never slips."""

    def __init__(self, writes):
        self._draws = [value for write in writes for value in ((0.0, 1.0) if write else (1.0,))]

    def random(self):
        return self._draws.pop(0) if self._draws else 1.0


@pytest.mark.parametrize(
    ("writes", "text"), [([True], "48>2,23>5"), ([False], "483>5")], ids=["fully worked", "one skip"]
)
def test_the_examples_of_the_docs(writes, text):
    assert worked(Coin(writes), [4, 8, 3], write=0.5, slip=0.5) == text
    assert Chain().grade(Problem("", "4+8+3=", "5"), text, True) == Grade(True, 1.0)


@pytest.mark.parametrize(
    ("response", "finished", "correct"),
    [
        (">5", True, True),
        ("48>2,23>5", True, True),
        ("483>5", True, True),
        ("anything,=+>5", True, True),
        (">5", False, False),
        ("48>2,23>5", False, False),
        (">4", True, False),
        ("5", True, False),
        ("", True, False),
        (">", True, False),
        (">5,", True, False),
        (">55", True, False),
    ],
)
def test_a_response_is_right_iff_it_stops_after_the_right_digit(response, finished, correct):
    assert Chain().grade(Problem("", "4+8+3=", "5"), response, finished) == Grade(correct, float(correct))


@pytest.mark.parametrize("terms", range(2, 10))
def test_fully_worked_length_with_its_stop_token(terms):
    digits = draw_digits(stream(0, "test", terms), terms, terms)
    assert len(worked(stream(0, "test"), digits, write=1.0, slip=0.0)) + 1 == 5 * (terms - 1)


@pytest.mark.parametrize("write", [0.0, 0.3, 0.65, 1.0])
def test_every_worked_answer_without_slips_is_right(write):
    rng = stream(3, "test")
    for _ in range(300):
        digits = draw_digits(rng, 3, 7)
        text = worked(rng, digits, write, slip=0.0)
        problem = Problem("", "+".join(map(str, digits)) + "=", str(sum(digits) % 10))
        assert Chain().grade(problem, text, True).correct
        assert set(text) <= set(CHARACTERS)


def test_a_certain_slip_is_never_right_where_one_sum_is_written():
    rng = stream(4, "test")
    for _ in range(200):
        digits = draw_digits(rng, 3, 7)
        text = worked(rng, digits, write=0.0, slip=1.0)
        assert not Chain().grade(Problem("", "", str(sum(digits) % 10)), text, True).correct


def test_demonstrations_follow_the_mixture():
    rng = stream(5, "test")
    assert sum(share for share, _ in MIXTURE) == pytest.approx(1.0)
    guesses, right, count = 0, 0, 4000
    for _ in range(count):
        digits = draw_digits(rng, 3, 7)
        text = draw_demonstration(rng, digits)
        guesses += len(text) == 2
        right += Chain().grade(Problem("", "", str(sum(digits) % 10)), text, True).correct
    assert abs(guesses / count - 0.40) < 4 * (0.24 / count) ** 0.5
    assert 0.85 < right / count < 0.97


@pytest.mark.parametrize(("low", "high"), [(3, 7), (2, 2), (5, 9)])
def test_problems_have_as_many_terms_as_asked_and_the_right_answer(low, high):
    terms = set()
    for problem in Chain(low, high).held_out(300):
        digits = [int(digit) for digit in problem.prompt.removesuffix("=").split("+")]
        terms.add(len(digits))
        assert all(0 <= digit <= 9 for digit in digits)
        assert problem.answer == str(sum(digits) % 10)
    assert terms == set(range(low, high + 1))


def test_held_out_problems_depend_on_no_seed_and_grow_at_the_end():
    assert Chain().held_out(8) == Chain().held_out(50)[:8]
    ids = [problem.id for problem in Chain().held_out(50)]
    assert len(set(ids)) == 50
    assert not set(ids) & {Chain().training(0, group).id for group in range(50)}


def test_prompts_are_keyed_by_seed_and_group():
    forwards = [Chain().training(1, group) for group in range(40)]
    assert forwards == [Chain().training(1, group) for group in reversed(range(40))][::-1]
    assert forwards != [Chain().training(2, group) for group in range(40)]
    assert len({problem.prompt for problem in forwards}) > 35


def test_operands_are_uniform():
    digits = np.concatenate([draw_digits(stream(6, "test", i), 5, 5) for i in range(2000)])
    counts = np.bincount(digits, minlength=10)
    chi_square = float(((counts - 1000) ** 2 / 1000).sum())
    assert chi_square < 27.9  # 99.9 % of a chi-square with 9 degrees of freedom
