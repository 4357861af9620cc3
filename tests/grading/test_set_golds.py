"""Intervals, points, sets and lists."""

import pytest

RIGHT = [
    ("(1,2)", "(1,2)"),
    ("(1,2)", "1<x<2"),
    ("[1,2)", r"1\le x<2"),
    ("[1,2)", r"2>x\ge1"),
    ("x<3", r"(-\infty,3)"),
    (r"(-\infty,3)", "x<3"),
    (r"(-\infty,3]", r"x\leq 3"),
    (r"x \geq 2", r"[2,\infty)"),
    (r"[2,\infty)", r"[2,+\infty)"),
    (r"(0,9)\cup(9,36)", r"(9,36)\cup(0,9)"),
    (r"(0,9)\cup(9,36)", r"0<x<9\text{ or }9<x<36"),
    (r"x<1\text{ or }x>3", r"(-\infty,1)\cup(3,\infty)"),
    (r"\{x|-4\le x<3\}", "[-4,3)"),
    (r"\{x|-4\le x<3\}", r"\{x: -4\le x<3\}"),
    (r"\{x|-4\le x<3\}", r"-4\le x<3"),
    (r"\{x|x=3k,k\in\mathbb{Z}\}", r"\{3k \mid k\in\mathbb{Z}\}"),
    (r"\{x|x=3k,k\in\mathbb{Z}\}", r"\{x \mid x=3n, n\in Z\}"),
    (r"\{1,2,3\}", r"\{3,2,1\}"),
    (r"\{1,2,3\}", "1,2,3"),
    ("1,2,3", r"\{1,2,3\}"),
    ("1,2,3", "3, 2 and 1"),
    ("12,5,2,2", "2,2,5,12"),
    ("(1,2),(3,4)", "(3,4),(1,2)"),
    (r"x\in[-3,8]", "[-3,8]"),
    ("[-3,8]", r"x\in[-3,8]"),
    ("[-3,8]", r"-3\le x\le8"),
    (r"\mathbb{R}", r"(-\infty,\infty)"),
    (r"(-\infty,0)\cup(0,\infty)", r"x\ne0"),
    (r"(-\infty,0)\cup(0,\infty)", r"\mathbb{R}\setminus\{0\}"),
    (r"\emptyset", r"\{\}"),
    (r"\left(3,\frac\pi2\right)", r"(3,\pi/2)"),
]
WRONG = [
    ("(1,2)", "(2,1)"),
    ("(1,2)", "1,2"),
    ("(1,2)", "[1,2]"),
    ("(1,2)", r"\{1,2\}"),
    ("(1,2)", r"1\le x<2"),
    ("[1,2)", "(1,2]"),
    (r"(-\infty,3)", "x<=3"),
    (r"(0,9)\cup(9,36)", "(0,36)"),
    (r"\{x|-4\le x<3\}", "3"),
    (r"\{x|x=3k,k\in\mathbb{Z}\}", "3"),
    (r"\{x|x=3k,k\in\mathbb{Z}\}", r"\{x|x=3k+1,k\in\mathbb{Z}\}"),
    (r"\{1,2,3\}", r"\{1,2\}"),
    (r"\{1,2\}", r"\{1,2,2\}"),
    (r"\{2\}", "2"),
    ("1,2,3", "1,2"),
    ("1,2", "1,2,3"),
    ("12,5,2,2", "12,5,2"),
    ("12,5,2,2", "12,5,5,2"),
    ("-2,-2", "-2"),
    ("(1,2),(3,4)", "(1,2)"),
    ("(1,2),(3,4)", "(2,1),(3,4)"),
    (r"(3,\frac{\pi}{2})", "3"),
    (r"(3,\frac{\pi}{2})", r"(\frac{\pi}{2},3)"),
]


@pytest.mark.parametrize(("gold", "answer"), RIGHT)
def test_right_answers_are_accepted(accepts, gold, answer):
    assert accepts(gold, answer)


@pytest.mark.parametrize(("gold", "answer"), WRONG)
def test_wrong_answers_are_refused(accepts, gold, answer):
    assert not accepts(gold, answer)
