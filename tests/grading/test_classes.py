"""Equivalence classes of answers, for votes."""

import pytest

from delaysim.grading import make_gold

VOTES = {
    "numbers": (make_gold("5"), ["5", "5.0", "6", None, r"\frac{12}{2}", "x=5", "7"], [0, 0, 1, -1, 1, 0, 2]),
    "roots": (make_gold(r"2\sqrt{2}"), [r"\sqrt{8}", r"\sqrt{2}", r"2\sqrt{2}", r"\frac{2}{\sqrt{2}}"], [0, 1, 0, 1]),
    "lists": (make_gold("1,2"), ["2,1", "1", r"1 \text{ and } 2", "2, 3", "3,2", r"\{1,2\}"], [0, 1, 0, 2, 2, 0]),
    "words": (make_gold(r"\text{north}"), ["North", "south", r"\text{South}", "north."], [0, 1, 1, 0]),
    "choices": (make_gold("C"), ["(C)", "D", r"\text{(D)}", "C. 12", "E"], [0, 1, 1, 0, 2]),
    "what cannot be read": (make_gold("5"), ["", "???", "", "???", "5"], [0, 1, 0, 1, 2]),
    "nothing": (make_gold("5"), [None, None], [-1, -1]),
    "none": (make_gold("5"), [], []),
}


@pytest.mark.parametrize("case", VOTES)
def test_equal_answers_are_one_class(grader, case):
    gold, texts, classes = VOTES[case]
    assert grader.classes(gold, texts) == classes


def test_numbers_need_no_worker():
    from delaysim.grading import Grader

    with Grader() as grader:
        assert grader.classes(make_gold("5"), [str(n % 7) for n in range(50)]) == [n % 7 for n in range(50)]
        assert grader.pool.pids() == []
