"""Equations against equations and against what they are solved for."""

import pytest

RIGHT = [
    ("x=5", "5"),
    ("5", "x=5"),
    ("5", "5=x"),
    ("5", "5 = AB"),
    (r"\frac{1}{2}", r"\frac12 = P(A)"),
    ("5", "x = 5 = y"),
    ("5", "2+3 = x"),
    ("y=2x+3", "2x+3"),
    ("y=2x+3", "y=3+2x"),
    ("y=2x+3", "2x-y+3=0"),
    ("3x-8y+5z+7=0", "-3x+8y-5z-7=0"),
    (r"\frac{x^2}{2}-\frac{y^2}{2}=1", "x^2-y^2=2"),
    ("f(x)=2x", "2x"),
    ("2x", "f(x)=2x"),
    ("f(n)=n", "n"),
    ("N=n", "n"),
    ("N=n", "n=N"),
    ("3RS+R+S", "R+S+3SR"),
    ("a=2, a=-6", "a=-6, a=2"),
    ("a=2,a=-6", "2,-6"),
    ("MR=SRMC", "SRMC=MR"),
    ("f(x)=x,f(x)=2-x", "f(x)=2-x, f(x)=x"),
    ("b>a>c", "c<a<b"),
]
WRONG = [
    ("x=5", "x=6"),
    ("x=5", "y=5"),
    ("x=5", "5=y"),
    ("5", "6=x"),
    ("5", "5 = 6 = x"),
    ("5", "5 = 2x"),
    ("x", "5=x"),
    ("5", "x=y"),
    ("y=2x+3", "2x-y=3"),
    ("3x-8y+5z+7=0", "3x-8y+5z-7=0"),
    ("3x-8y+5z+7=0", "0"),
    ("3x-8y+5z+7=0", "3x-8y+5z+7"),
    (r"\frac{x^2}{2}-\frac{y^2}{2}=1", "1"),
    ("1", r"\frac{x^2}{2}-\frac{y^2}{2}=1"),
    ("3x-y+13=0", "3x+4y+14=0"),
    ("f(x)=2x", "g(x)=2x"),
    ("N=n", "N"),
    ("3RS+R+S", "3rs+r+s"),
    ("MR=SRMC", "MR=LRMC"),
    ("f(x)=x,f(x)=2-x", "f(x)=x"),
    ("b>a>c", "b>c>a"),
    ("b>a>c", "b"),
    ("k=3", r"k\ge 3"),
]


@pytest.mark.parametrize(("gold", "answer"), RIGHT)
def test_right_answers_are_accepted(accepts, gold, answer):
    assert accepts(gold, answer)


@pytest.mark.parametrize(("gold", "answer"), WRONG)
def test_wrong_answers_are_refused(accepts, gold, answer):
    assert not accepts(gold, answer)
