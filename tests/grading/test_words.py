"""Choices, words, numerals in a base, times of day."""

import pytest

RIGHT = [
    ("C", "C"),
    ("C", "(C)"),
    ("C", r"\text{(C)}"),
    ("C", r"\textbf{(C)}\ 12"),
    ("C", r"\text{C. } 12"),
    (r"\text{(B)}", "B"),
    ("B", "(b)"),
    (r"\text{south}", "south"),
    (r"\text{south}", r"\text{South.}"),
    ("Miriam", "miriam"),
    ("Region IV", r"\text{Region IV}"),
    (r"\text{ellipse}", "an ellipse"),
    ("Yes", "yes"),
    ("No", r"\text{No}"),
    ("73_8", "73_{8}"),
    ("73_8", r"73_{\text{eight}}"),
    ("73_8", r"73\text{ (base 8)}"),
    ("1A_{16}", "1a_{16}"),
    ("4am", "4 a.m."),
    ("4am", "4:00 AM"),
    ("2:47 am", r"2:47\text{ a.m.}"),
    ("5pm", "17:00"),
    ("noon", "12:00 pm"),
]
WRONG = [
    ("C", "D"),
    ("C", "C, D"),
    ("C", "A"),
    ("C", "C and D"),
    ("C", "(A) 1 (B) 2 (C) 3"),
    ("C", "12"),
    ("B", "b"),
    ("south", "shout"),
    ("south", "West"),
    (r"\text{even}", "odd"),
    (r"\text{even}", r"\text{not even}"),
    (r"\text{even}", r"\text{odd or even}"),
    ("Region IV", "Region V"),
    ("Region IV", "IV"),
    ("Yes", "No"),
    ("73_8", "73_9"),
    ("73_8", "73"),
    ("73_8", "59"),
    ("73_8", "73_{10}"),
    ("1011_2", "11"),
    ("4am", "4pm"),
    ("4am", "4"),
    ("2:47 am", "2:47 pm"),
    ("2:47 am", "2/47"),
    ("3:30 pm", "3:30"),
]


@pytest.mark.parametrize(("gold", "answer"), RIGHT)
def test_right_answers_are_accepted(accepts, gold, answer):
    assert accepts(gold, answer)


@pytest.mark.parametrize(("gold", "answer"), WRONG)
def test_wrong_answers_are_refused(accepts, gold, answer):
    assert not accepts(gold, answer)
