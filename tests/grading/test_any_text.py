"""Whatever a model writes: no exception, no long wait, and the same answer is always right."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delaysim.grading import GoldError, UndecidedError, make_gold
from delaysim.grading.extract import extract
from delaysim.grading.jobs import judged
from delaysim.grading.verdict import right

GOLDS = [
    make_gold(text)
    for text in (
        *(
            "7",
            "0.25",
            "3.1e-7",
            r"\frac{2}{7}",
            r"2\sqrt{5}",
            "x^2+1",
            "y=3x",
            "[2,5)",
            "(2,5)",
            "(1,2,3)",
            r"\{1,2\}",
        ),
        *(
            "3,4,4",
            "C",
            r"\text{north}",
            "61_7",
            "7:15 pm",
            r"\begin{pmatrix}1\\2\end{pmatrix}",
            "c>a>b",
            r"5\text{ cm}",
        ),
    )
]
LATEX = r"""\frac{ \sqrt{ \left( \right) \{ \} \le \in \cup \pm \infty \text{ \cdot \pi \sin \binom{ \log_ \mathbb{R}
\begin{pmatrix} \end{pmatrix} \\ & \mid \setminus \angle \overline{ \vec{ \% \$ \, \! {,} or and cm am pm e i x y f(x)
A C \circ \lfloor \rfloor \ldots \sum \int np. \approx ° − ² ½"""
PIECES = [*"0123456789+-*/.,;:^_=<>(){}[]|!$%' \n", *LATEX.split()]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)


@settings(deadline=None)
@given(st.sampled_from(GOLDS), TEXTS)
def test_every_text_gets_a_judgement(gold, text):
    assert judged(gold, text) in (True, False)
    try:
        decided = right(gold, text)
    except UndecidedError:
        return
    assert decided == judged(gold, text)


@settings(deadline=None)
@given(TEXTS)
def test_a_text_equals_itself(text):
    try:
        gold = make_gold(text)
    except GoldError:
        return
    assert right(gold, text)


@settings(deadline=None)
@given(st.text(max_size=60))
def test_unicode_is_judged_too(text):
    found = extract(text, flexible=True)
    assert found is None or found.text
    for gold in GOLDS:
        assert judged(gold, text) in (True, False)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 900 + "x" + ")" * 900,
        r"\frac{" * 300 + "1" + "}{2}" * 300,
        r"\sqrt" * 400 + "2",
        "x^" * 600 + "2",
        "-" * 1900 + "1",
        "1+" * 900 + "1",
        "x" * 1100,
        "2*" * 580 + "2",
        "|" * 1000,
        "!" * 1000,
        "5" + "!" * 800,
        r"\pm 1" * 300,
        "1," * 900 + "1",
        "a=" * 600 + "1",
        "x<" * 600 + "1",
        r"\cup" * 400,
        "{" * 1500,
        r"\text{" * 300,
        "$" * 1500,
        "9" * 100_000,
        r"9^{9^{9^{9}}}",
        r"(10^{9})!",
        r"\binom{10^{7}}{5\cdot10^{6}}",
        "1e300^(1e300)",
        r"\begin{pmatrix}" + "1 & " * 400 + r"1\end{pmatrix}",
        " 1" * 900,
        "a b " * 400,
        "_{" * 500 + "}" * 500,
        "f(" * 500 + ")" * 500,
        "A" * 1500,
        "12 " + "apples " * 250,
    ],
    ids=lambda text: text[:12],
)
def test_long_and_large_texts_are_quick(text):
    start = time.process_time()
    for gold in GOLDS:
        judged(gold, text)
    extract(text, flexible=True)
    assert time.process_time() - start < 5
