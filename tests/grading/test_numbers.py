import json
import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delaysim.data import read_jsonl
from delaysim.grading.extract import Extracted, extract
from delaysim.grading.numbers import number, same_number


@pytest.mark.parametrize(
    ("response", "text", "method"),
    [
        (r"So \boxed{5}.", "5", "boxed"),
        (r"First guess \boxed{4}. No, \boxed{5}.", "5", "boxed"),
        (r"\boxed{\boxed{5}}", "5", "boxed"),
        (r"\fbox{7}", "7", "boxed"),
        (r"\boxed {7}", "7", "boxed"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}", "boxed"),
        (r"\boxed{\{1,2\}}", r"\{1,2\}", "boxed"),
        (r"\boxed{5} and #### 6, the answer is 7", "5", "boxed"),
        (r"\boxed{4 so \boxed{5}", "5", "boxed"),
        ("She makes 9 * 2 = $18 every day.\n#### 18", "18", "hash"),
        ("#### 1\nno\n#### 1,800 \nthe answer is 7", "1,800", "hash"),
        ("905 = 905\n\nTherefore, Final Answer: **73**", "**73**", "phrase"),
        ("**Final Answer:** 73", "73", "phrase"),
        ("The answer is C.", "C", "phrase"),
        ("The answer is 12. Then 3 more.", "12", "phrase"),
        ("the answer is: $3.50. Thanks", "$3.50", "phrase"),
        ("Answer:\n\n5", "5", "phrase"),
        ("The answer is 4. No, the final answer is 5", "5", "phrase"),
        (r"<think>\boxed{4}</think> It is \boxed{5}", "5", "boxed"),
        (r"<think>\boxed{4}</think> The answer is 5", "5", "phrase"),
    ],
)
def test_final_answer_is_found(response, text, method):
    assert extract(response) == Extracted(text, method)


@pytest.mark.parametrize(
    "response",
    [
        "",
        "5",
        "I get 5, then 6.",
        r"\boxed{4}, no: \boxed{5",
        r"\boxed{4}, no: \boxed{\frac{1}{2}",
        r"\boxed{4}, no: \boxed",
        r"\boxed{4}, no: \boxed{}",
        r"The answer is 5. \boxed{5",
        r"\boxed{5\}",
        r"<think>\boxed{4}</think> done",
        "##### 5",
        "#### ",
        "The answer isn't 5",
        "The answer is",
    ],
)
def test_no_answer_where_the_last_form_holds_none(response):
    assert extract(response) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("18", 18),
        ("18.", 18),
        ("18.00", 18),
        ("1,234", 1234),
        ("1,234,567.50", Fraction(2469135, 2)),
        (r"10,\!080", 10080),
        ("10{,}080", 10080),
        (r"10\,080", 10080),
        ("+5", 5),
        ("-5", -5),
        ("- 5", -5),
        ("\N{MINUS SIGN}5", -5),
        (".5", Fraction(1, 2)),
        ("3/4", Fraction(3, 4)),
        ("-3./2", Fraction(-3, 2)),
        ("1.5/2", Fraction(3, 4)),
        (r"\frac{3}{4}", Fraction(3, 4)),
        (r"\dfrac{3}{4}", Fraction(3, 4)),
        (r"-\tfrac{3}{4}", Fraction(-3, 4)),
        (r"\frac{-3}{4}", Fraction(-3, 4)),
        (r"\frac{3}{-4}", Fraction(-3, 4)),
        (r"-\frac{-3}{-4}", Fraction(-3, 4)),
        (r"\frac12", Fraction(1, 2)),
        (r"\frac{1,000}{3}", Fraction(1000, 3)),
        (r"1\frac{4}{5}", Fraction(9, 5)),
        ("2 2/3", Fraction(8, 3)),
        ("-2 2/3", Fraction(-8, 3)),
        ("1e-5", Fraction(1, 100_000)),
        ("4.5e33", 45 * 10**32),
        (r"4.5 \times 10^{33}", 45 * 10**32),
        (r"4.5\cdot10^3", 4500),
        (r"-2\times 10^{-3}", Fraction(-2, 1000)),
        ("1.5x10^2", 150),
        ("10^{5}", 100_000),
        ("$18", 18),
        (r"\$18", 18),
        ("$18$", 18),
        (r"$\$18$", 18),
        (r"\(18\)", 18),
        (r"\[ 18 \]", 18),
        ("-$5", -5),
        ("$-5", -5),
        ("28%", 28),
        (r"28\%", 28),
        (r"1.1\%", Fraction(11, 10)),
        (r"90^\circ", 90),
        ("25°C", 25),
        ("**73**", 73),
        ("18.**", 18),
        (r"\text{18}", 18),
        (r"\mathbf{18}", 18),
        ("x = 5", 5),
        ("18 dollars", 18),
        ("18 dollars.", 18),
        ("$18 per day", 18),
        (r"18\text{ dollars}", 18),
        (r"20 $cm^{2}$", 20),
        (r"20\text{ m}^2", 20),
        ("20cm", 20),
        ("60 miles per hour", 60),
        ("60 miles/hour", 60),
        ("3/4 cups", Fraction(3, 4)),
        ("5 boxes of pizza", 5),
    ],
)
def test_numbers(text, value):
    assert number(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "C",
        "-",
        ".",
        "$",
        "0.333...",
        "1,2",
        "1, 200",
        r"1,\,2",
        "1,2345",
        "5,",
        "(1,2)",
        r"4 \text{ or } 5",
        r"\pm 2021",
        r"4\sqrt(2)",
        "40_9",
        "5am",
        "5 pm",
        "5:30",
        "5x",
        "6m",
        "6 m",
        "5!",
        "5^2",
        "5²",
        r"5\pi",
        "5 squared",
        "5 million",
        r"5\text{ million}",
        r"5\text{M}",
        "3 dozen",
        "2 thirds",
        "5 and a half",
        "5th",
        "2+3",
        "2+3=5",
        "5=5",
        "1/0",
        r"\frac{1}{0}",
        "1/2/3",
        r"\frac{1}{2}\frac{3}{4}",
        r"\frac{1}{2}5",
        r"\frac{1}{2",
        "2 -2/3",
        "1e5000",
        "1e-5000",
        "1e99999999999",
        "10^{10^9}",
        r"10^{99999999999}",
        r"\dfrac{5^{5^{5^{5^5}}-4}-5}{16}",
        "9" * 5000,
        "nan",
        "1_000",
        "0x10",
        "５",
        "٣",
    ],
)
def test_anything_else_is_no_number(text):
    assert number(text) is None
    assert not same_number(text, text)


@pytest.mark.parametrize(
    ("gold", "answer"),
    [("18", "17"), ("18", "-18"), ("0.5", "50"), ("50", "0.5"), ("7", "7.0005"), ("1", "1e-400"), ("2", "2 2/3")],
)
def test_comparison_is_exact(gold, answer):
    assert not same_number(gold, answer)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 100_000,
        r"\boxed{" * 20_000,
        "{" * 100_000,
        r"\frac" * 20_000,
        "answer " * 20_000,
        "answer" + " " * 100_000,
        "#" * 100_000,
        "$ " * 50_000,
        "1," * 50_000,
        "\\" * 100_000,
        r"\boxed{" + "9" * 100_000 + "}",
    ],
)
def test_junk_is_quick(text):
    start = time.perf_counter()
    found = extract(text)
    for piece in (text, text[:1000], found.text if found else "", found.text[:1000] if found else ""):
        same_number(piece, piece)
    assert time.perf_counter() - start < 1.0


@pytest.mark.parametrize("piece", ["1 ", "1,", "1,111", ". ", "x=", "$", "{", r"\text{", "a ", "a/", "- ", "1/", "10^"])
def test_the_longest_texts_are_quick(piece):
    start = time.perf_counter()
    for text in (piece * 1000)[:1000], "1 " + (piece * 1000)[:998], "$" + (piece * 1000)[:998] + "$":
        number(text)
    assert time.perf_counter() - start < 0.5


LATEX = r"\boxed{ \frac{ \text{ \times 10^{ \( \) \, \! #### </think> answer: cm or"
PIECES = [*"0123456789+-*/.,^_=(){}$% \n", *LATEX.split()]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_no_text_raises(text):
    found = extract(text)
    assert found is None or found.text
    assert same_number(text, text) == (number(text) is not None)


@given(st.fractions(), st.sampled_from(["{n}/{d}", r"\frac{{{n}}}{{{d}}}", r"$\dfrac{{{n}}}{{{d}}}$", "{n}/{d} cups"]))
def test_every_fraction_is_read_exactly(value, form):
    assert number(form.format(n=value.numerator, d=value.denominator)) == value


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12, places=4))
def test_every_decimal_is_read_exactly(value):
    assert number(str(value)) == number(f"{value:,}") == number(f"${value:,} dollars.") == Fraction(value)


NOT_FOR_US = {"text2", "text3", "mcq", "mcq2", "np", "unit3", "pm", "i10", "xin", "sqrtinv", "sci2"}
"""Right answers that are no numbers (left to math-verify), and one that no marker announces."""


def test_known_cases_are_judged_right_and_never_too_kindly(shared):
    cases = json.loads((shared / "data" / "answer_cases.json").read_text())
    for case in cases:
        gold, found = extract(case["gold"]), extract(case["prediction"])
        judged = same_number(gold.text if gold else case["gold"], found.text if found else case["prediction"])
        assert judged == (case["correct"] and case["name"] not in NOT_FOR_US), case["name"]
    assert len(cases) == 41


@pytest.mark.parametrize(("name", "count"), [("gsm8k", 1319), ("gsm8k_train", 7473)])
def test_every_gold_equals_itself_and_is_found_in_its_box(shared, name, count):
    golds = [row["answer"] for row in read_jsonl(shared / "data" / f"{name}.jsonl", ("problem", "answer"))]
    assert len(golds) == count
    for gold in golds:
        assert same_number(gold, gold)
        assert extract(rf"So it is \boxed{{{gold}}}.") == Extracted(gold, "boxed")
        assert same_number(gold, f"{int(gold):,}")
        assert not same_number(gold, str(int(gold) + 1))
