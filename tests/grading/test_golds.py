"""Golds: how they are typed and patched, and that every one of the six benchmarks verifies against itself."""

import json
from collections import Counter

import notations
import pytest

from delaysim.data import read_jsonl
from delaysim.grading import Gold, GoldError, grade, make_gold
from delaysim.grading.audit import row_gold
from delaysim.grading.patches import patches
from delaysim.grading.rules import TYPES

SETS = {"gsm8k": 1319, "math500": 500, "minerva": 272, "olympiad": 675, "amc23": 40, "gaokao2023en": 385}
WRONG_AS_GIVEN = {"gaokao/part1.en_zh.json#167", "gaokao/part1.en_zh.json#192", "gaokao/part2.en_zh.json#349"}
"""Two empty answers and a wrong one."""


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("18", "integer"),
        ("1,800", "integer"),
        ("-0.25", "decimal"),
        ("3.1e-7", "sci"),
        (r"3.1\times10^{-7}", "sci"),
        (r"\frac{2}{7}", "fraction"),
        ("2/7", "fraction"),
        (r"2\sqrt{5}", "expr"),
        ("4-3i", "expr"),
        ("y=3x", "equation"),
        ("[2,5)", "interval"),
        (r"(2,\infty)", "interval"),
        (r"x\ge 3", "interval"),
        (r"\{x \mid x>1\}", "interval"),
        ("(2,5)", "pair"),
        ("(1,2,3)", "tuple"),
        (r"\{1,2\}", "set"),
        ("3,4", "multiset"),
        (r"2\pm\sqrt{3}", "multiset"),
        ("3 or 4", "multiset"),
        ("C", "choice"),
        (r"\text{(D)}", "choice"),
        (r"\text{north}", "text"),
        ("Friday", "text"),
        ("61_7", "base_n"),
        ("7:15 pm", "time"),
        (r"\begin{pmatrix}1\\2\end{pmatrix}", "matrix"),
        ("c>a>b", "literal"),
    ],
)
def test_a_type_follows_from_the_looks(answer, kind):
    gold = make_gold(answer)
    assert gold.type == kind
    assert gold.type in TYPES
    assert gold.answer == answer


def test_a_row_can_say_more_than_the_looks():
    assert make_gold("(2,5)", problem="Find the point where the lines meet.").type == "tuple"
    assert make_gold("(2,5)", answer_type="Interval").type == "interval"
    assert make_gold("(2,5)", problem="On which interval does the point move?").type == "pair"
    assert make_gold("1,200", multiple=True).type == "multiset"
    assert make_gold("1,200").type == "integer"
    assert make_gold("3", answer_type="text").type == "text"
    assert make_gold("3", answer_type="Numerical").type == "integer"


@pytest.mark.parametrize("answer", ["", " ", "$$", "$ $", r"\boxed{}", ".", "()", "####", r"\,", r"\frac{1", "{2}}"])
def test_an_answer_that_says_nothing_is_refused(answer):
    with pytest.raises(GoldError):
        make_gold(answer)


@pytest.mark.parametrize("wrong", [{"tolerance": -1}, {"tolerance": float("nan")}, {"rel_tol": float("inf")}])
def test_tolerances_are_checked(wrong):
    with pytest.raises(ValueError, match="give a finite number"):
        make_gold("5", **wrong)


def test_a_gold_may_stand_in_a_box_or_behind_hashes():
    assert make_gold(r"\boxed{5}").text == make_gold("so 5\n#### 5").text == "5"


@pytest.mark.parametrize(
    ("allowed", "answer", "status"),
    [
        ({}, "3.14", "wrong"),
        ({"rel_tol": 0.01}, "3.16", "correct"),
        ({"rel_tol": 0.01}, "3.2", "wrong"),
        ({"tolerance": 0.1}, "3.2", "correct"),
        ({"tolerance": 0.1}, "3.3", "wrong"),
    ],
)
def test_tolerances(allowed, answer, status):
    assert grade(make_gold("3.15", **allowed), rf"\boxed{{{answer}}}").status == status


def test_tolerance_is_used_where_algebra_decides(grader):
    gold = make_gold(r"\sqrt{2}", rel_tol=0.01)
    assert grader.grade(gold, r"\boxed{1.41}").score == 1
    assert grader.grade(gold, r"\boxed{1.5}").score == 0
    assert grader.grade(make_gold(r"\sqrt{2}"), r"\boxed{1.41421356}").score == 0


@pytest.mark.parametrize(
    ("problem", "gold", "quoted", "worked"),
    [
        (r"Simplify $\sqrt{75}$.", r"5\sqrt{3}", r"\sqrt{75}", r"3\sqrt{3}+2\sqrt{3}"),
        (r"Expand $(x+2)^2$.", "x^2+4x+4", "(x+2)^2", "4+x(x+4)"),
        (r"Reduce \(\frac{26}{39}\).", r"\frac{2}{3}", r"\frac{26}{39}", "2/3"),
        (r"Compute $3 \cdot 17 + 2$.", "53", r"3\cdot17+2", "53"),
        (r"A coin with $1/2$ chance.", r"\frac{1}{2}", "1/3", "1/2"),
        (r"An angle of $\pi/2$.", r"\frac{\pi}{2}", "2", r"\pi/2"),
    ],
)
def test_quoting_the_problem_is_no_answer(accepts, problem, gold, quoted, worked):
    assert not accepts(gold, quoted, problem=problem)
    assert accepts(gold, worked, problem=problem)


def test_patches_say_why_and_name_known_types():
    for name, patch in patches().items():
        assert patch.reason
        assert patch.type in TYPES, name
    assert len(patches()) < 50


def test_a_patch_replaces_a_wrong_answer_and_keeps_the_raw_one():
    name = "gaokao/part2.en_zh.json#349"
    gold = make_gold("$902$", id=name)
    assert (gold.answer, gold.text, gold.patched) == ("$902$", "901", patches()[name].reason)
    assert grade(gold, r"\boxed{901}").score == 1
    assert grade(gold, r"\boxed{902}").score == 0
    assert make_gold("", id="gaokao/part1.en_zh.json#167").text == r"\frac{3}{10}"


def golds_of(shared, name):
    rows = (
        read_jsonl(shared / "data" / f"{name}.jsonl", ("answer",)) if name != "gaokao2023en" else read_all(shared, name)
    )
    return [row_gold(row) for row in rows]


def read_all(shared, name):
    return [json.loads(line) for line in (shared / "data" / f"{name}.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("name", SETS)
def test_every_gold_is_accepted_in_a_box_as_it_was_given(shared, name):
    golds = golds_of(shared, name)
    assert len(golds) == SETS[name]
    refused = {gold.id for gold in golds if grade(gold, rf"So it is \boxed{{{gold.answer}}}.").status != "correct"}
    assert refused == {gold.id for gold in golds} & WRONG_AS_GIVEN


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_every_gold_is_accepted_in_other_notations(shared, name, grader):
    items = [(gold, rf"\boxed{{{form}}}") for gold in golds_of(shared, name) for form in notations.same(gold)]
    refused = [(gold.text, box) for (gold, box), v in zip(items, grader.grade_many(items), strict=True) if not v.score]
    assert len(items) > 4 * SETS[name]
    assert refused == []


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_answers_near_a_gold_are_refused(shared, name, grader):
    items = [(gold, rf"\boxed{{{form}}}") for gold in golds_of(shared, name) for form in notations.near(gold)]
    accepted = [(gold.text, box) for (gold, box), v in zip(items, grader.grade_many(items), strict=True) if v.score]
    assert len(items) > 2 * SETS[name]
    assert accepted == []


def test_scientific_golds_are_all_read(shared):
    kinds = Counter(gold.type for gold in golds_of(shared, "minerva"))
    assert kinds["sci"] == 58


def test_what_was_found_wrong_with_golds_is_met(shared):
    """Every row of gold_issues.jsonl has a type that keeps what the plain parser loses."""
    wanted = {
        "sci_notation": {"sci"},
        "text_answer": {"text"},
        "base_subscript": {"base_n"},
        "choice_letter": {"choice"},
        "clock_time": {"time"},
        "pair_parsed_as_interval": {"tuple", "interval"},
        "set_builder": {"interval", "set"},
    }
    golds = {
        gold.id: gold for name in ("math500", "minerva", "olympiad", "gaokao2023en") for gold in golds_of(shared, name)
    }
    rows = [json.loads(line) for line in (shared / "data" / "gold_issues.jsonl").read_text().splitlines()]
    assert len(rows) == 175
    for row in rows:
        for issue in set(row["issues"]) & wanted.keys():
            assert golds[row["id"]].type in wanted[issue], row


def test_known_cases_are_judged_as_they_should(shared, accepts_response):
    for case in json.loads((shared / "data" / "answer_cases.json").read_text()):
        try:
            judged = accepts_response(case["gold"], case["prediction"])
        except GoldError:
            judged = False
        assert judged == case["correct"], case["name"]


def test_golds_are_values():
    assert make_gold("5") == make_gold("5")
    assert len({make_gold("5"), make_gold("5"), make_gold("6")}) == 2
    assert isinstance(make_gold("5"), Gold)
