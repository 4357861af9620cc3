"""Metrics of evaluation rows against exact fractions, closed forms and the published tables they reproduce."""

from fractions import Fraction
from itertools import combinations
from math import comb, isnan, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delaysim.metrics import (
    Problem,
    deduplicated,
    item_weighted,
    macro,
    majority,
    majority_at,
    pass_at_k,
    problems,
    set_mean,
)
from delaysim.scorecard import scorecard

SIZES = {"gsm8k": 1319, "math500": 500, "minerva": 272, "olympiad": 675, "amc23": 40, "gaokao2023en": 385}


def problem(value=0.0, name="a", cluster=None, greedy=None, samples=1):
    key = cluster or f"{name}/{id(object())}-{value}"
    return Problem(name, key, samples, round(value * samples), value, value if greedy is None else greedy,
                   0.0, 0.0, 1.0, 0.0, 0)  # fmt: skip


def set_of(name, right, total, prefix=""):
    """A set with `right` of `total` problems solved."""
    return [problem(float(i < right), name, f"{prefix or name}/{i}") for i in range(total)]


@pytest.mark.parametrize(
    ("n", "c", "k", "value"),
    [
        (16, 1, 4, Fraction(1, 4)),
        (16, 4, 8, Fraction(25, 26)),
        (16, 8, 8, Fraction(12869, 12870)),
        (16, 9, 8, Fraction(1)),
        (200, 1, 100, Fraction(1, 2)),
        (1000, 3, 500, Fraction(583, 666)),
        (4, 2, 4, Fraction(1)),
        (7, 0, 3, Fraction(0)),
    ],
)
def test_pass_at_k_is_the_fraction(n, c, k, value):
    assert pass_at_k(n, c, k) == pytest.approx(float(value), rel=1e-13, abs=1e-15)


def test_pass_at_k_of_very_many_responses_is_exact():
    assert pass_at_k(10**6, 1, 1) == pytest.approx(1e-6, rel=1e-15)


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_is_a_hypergeometric_tail(ncks):
    n, c, k = ncks
    assert pass_at_k(n, c, k) == pytest.approx(float(1 - Fraction(comb(n - c, k), comb(n, k))), abs=1e-12)
    assert pass_at_k(n, c, 1) == pytest.approx(c / n, rel=1e-12)


@pytest.mark.parametrize(("n", "c", "k"), [(4, 2, 5), (4, 2, 0), (4, 5, 1), (4, -1, 1)])
def test_pass_at_k_refuses_what_cannot_be(n, c, k):
    with pytest.raises(ValueError, match="needs 1 <= k <= n"):
        pass_at_k(n, c, k)


@pytest.mark.parametrize(
    ("classes", "scores", "value"),
    [
        ([0, 0, 1], [1, 1, 0], 1.0),
        ([0, 1, 1], [1, 0, 0], 0.0),
        ([0, 0, 1, 1], [1, 1, 0, 0], 0.5),
        ([0, 1, 2], [0, 1, 0], 1 / 3),
        ([None, None, 0], [0, 0, 1], 1.0),
        ([None, None], [0, 0], 0.0),
    ],
)
def test_majority_votes(classes, scores, value):
    """Silence is no vote, and classes that tie share the credit whichever came first."""
    assert majority(classes, scores) == pytest.approx(value)
    assert majority(classes[::-1], scores[::-1]) == pytest.approx(value)


LABELS = st.lists(st.sampled_from([None, 0, 1, 2, 3]), min_size=1, max_size=9)


@given(LABELS, st.data())
def test_majority_of_m_is_the_mean_over_all_subsets(classes, data):
    """By enumeration; scores may differ within a class, as where one of its answers could not be graded in time."""
    scores = data.draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=len(classes), max_size=len(classes)))
    scores = [0.0 if label is None else score for label, score in zip(classes, scores, strict=True)]
    for m in range(1, len(classes) + 1):
        drawn = [majority([classes[i] for i in s], [scores[i] for i in s]) for s in combinations(range(len(scores)), m)]
        assert majority_at(classes, scores, m) == pytest.approx(sum(drawn) / len(drawn), abs=1e-12)


@pytest.mark.parametrize(
    ("sizes", "silent", "m", "value"),
    [
        ((2, 1), 0, 2, Fraction(2, 3)),  # aa 1, ab and ab 1/2
        ((2, 1), 1, 2, Fraction(2, 3)),  # aa 1, ab and ab 1/2, a- and a- 1, b- 0
        ((3, 2), 0, 3, Fraction(7, 10)),  # at least two of a: 1 + 3 * 2 of 10
        ((9, 7), 0, 15, Fraction(1)),  # 8 : 7 at the closest
        ((9, 7), 0, 14, 1 - Fraction(comb(9, 7), comb(16, 14)) / 2),  # 7 : 7 in C(9, 7) ways, half the credit
        ((1, *[1] * 63), 0, 20, Fraction(1, 64)),  # 20 tie; the right one is among them in 20 of 64
        ((1,), 9, 3, Fraction(3, 10)),
    ],
)
def test_majority_of_m_in_closed_form(sizes, silent, m, value):
    """The first class is the right one."""
    classes = [label for label, size in enumerate(sizes) for _ in range(size)] + [None] * silent
    assert majority_at(classes, [float(label == 0) for label in classes], m) == pytest.approx(float(value), rel=1e-12)


@pytest.mark.parametrize(("n", "c", "m"), [(200, 90, 101), (200, 110, 51), (64, 31, 1), (300, 151, 299)])
def test_majority_of_two_answers_is_a_hypergeometric_tail(n, c, m):
    """Right where more than half of an odd number are; nobody could list these subsets."""
    classes = [0] * c + [1] * (n - c)
    wanted = sum(Fraction(comb(c, i) * comb(n - c, m - i), comb(n, m)) for i in range(m // 2 + 1, m + 1))
    assert majority_at(classes, [float(label == 0) for label in classes], m) == pytest.approx(float(wanted), rel=1e-12)


@given(LABELS.filter(lambda classes: len(classes) > 1))
def test_majority_of_one_is_the_average_and_of_all_the_vote(classes):
    """Of two as well, where everyone answers: two answers that differ share the credit."""
    scores = [float(label == 0) for label in classes]
    average = sum(scores) / len(scores)
    assert majority_at(classes, scores, 1) == pytest.approx(average)
    assert majority_at(classes, scores, len(classes)) == pytest.approx(majority(classes, scores))
    if None not in classes:
        assert majority_at(classes, scores, 2) == pytest.approx(average)


@pytest.mark.parametrize("m", [0, 3])
def test_majority_of_more_than_there_are_is_refused(m):
    with pytest.raises(ValueError, match=f"maj@{m} of 2: needs 1 <= m <= n"):
        majority_at([0, 1], [1.0, 0.0], m)


def test_the_error_of_amc23_is_eight_points():
    """sqrt(.525*.475/40) = 7.90 points, 1.32 of them in a macro mean of six; here with n-1 in the variance."""
    amc = set_mean(set_of("amc23", 21, 40))
    assert amc.mean == 0.525
    assert amc.se == pytest.approx(sqrt(0.525 * 0.475 / 39), rel=1e-12)
    others = [[problem(0.5, name, f"{name}/{i}") for i in range(9)] for name in "abcde"]
    assert macro([set_of("amc23", 21, 40), *others]).se == pytest.approx(amc.se / 6, rel=1e-12)


def test_macro_and_item_weighted_of_the_papers_greedy_gains():
    """8B: +6, -2, 0, -1, 0, +3 items are +.114 points macro and +.188 item-weighted; 4B AMC23: -2 items."""
    nets = {"gsm8k": 6, "math500": -2, "minerva": 0, "olympiad": -1, "amc23": 0, "gaokao2023en": 3}
    before = [set_of(name, 20, size) for name, size in SIZES.items()]
    after = [set_of(name, 20 + nets[name], size) for name, size in SIZES.items()]
    gain = {mean: 100 * (mean(after).mean - mean(before).mean) for mean in (macro, item_weighted)}
    assert gain[macro] == pytest.approx(100 / 6 * sum(net / SIZES[name] for name, net in nets.items()), rel=1e-9)
    assert (round(gain[macro], 3), round(gain[item_weighted], 3)) == (0.114, 0.188)
    amc = [set_of(name, 20 - 2 * (name == "amc23"), size) for name, size in SIZES.items()]
    assert 100 * (macro(amc).mean - macro(before).mean) == pytest.approx(-5 / 6, rel=1e-9)
    assert round(100 * (item_weighted(amc).mean - item_weighted(before).mean), 3) == -0.063


def test_amc23_is_seventy_percent_of_the_macros_variance():
    sets = [set_of(name, round(0.6 * size), size) for name, size in SIZES.items()]
    share = (set_mean(sets[4]).se / 6 / macro(sets).se) ** 2
    assert share == pytest.approx(0.70, abs=0.01)
    assert (round(100 * macro(sets).se, 2), round(100 * item_weighted(sets).se, 2)) == (1.55, 0.87)


def test_doubled_problems_do_not_shrink_the_error():
    """Every problem twice, in one cluster with its copy: the same mean and the same standard error."""
    once = [problem(v, "a", f"c{i}") for i, v in enumerate([0.0, 0.25, 0.5, 1.0, 1.0])]
    assert set_mean(once + once) == set_mean(once)
    apart = [problem(p.average, "a", f"{p.cluster}/{copy}") for copy in range(2) for p in once]
    assert set_mean(apart).se < set_mean(once).se


def test_a_problem_in_two_sets_brings_its_covariance():
    """Two equal sets on the same clusters: their macro mean is no more certain than one of them; apart, by sqrt 2."""
    one, other = set_of("a", 3, 8, "x"), set_of("b", 3, 8, "x")
    apart = set_of("b", 3, 8)
    assert macro([one, other]).se == pytest.approx(set_mean(one).se, rel=1e-12)
    assert macro([one, apart]).se == pytest.approx(set_mean(one).se / sqrt(2), rel=1e-12)


def test_deduplicated_counts_a_cluster_once():
    """Clusters x0 (right, in both sets), x1 (wrong, in both), b2 (right): 2 of 3; item-weighted it is 3 of 5."""
    one = [problem(1.0, "a", "x0"), problem(0.0, "a", "x1")]
    other = [problem(1.0, "b", "x0"), problem(0.0, "b", "x1"), problem(1.0, "b", "b2")]
    assert deduplicated([one, other]).mean == pytest.approx(2 / 3)
    assert deduplicated([one, other]).clusters == 3
    assert item_weighted([one, other]).mean == pytest.approx(3 / 5)


def test_one_cluster_has_no_error():
    assert isnan(set_mean([problem(1.0, "a", "c"), problem(0.0, "a", "c")]).se)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 5)), min_size=2, max_size=30))
def test_the_clustered_error_by_its_definition(drawn):
    found = [problem(value, "a", str(cluster)) for value, cluster in drawn]
    count = len({cluster for _, cluster in drawn})
    mean = sum(value for value, _ in drawn) / len(drawn)
    sums = [sum(v - mean for v, c in drawn if c == g) for g in {c for _, c in drawn}]
    if count > 1:
        wanted = sqrt(sum(s * s for s in sums) * count / (count - 1)) / len(drawn)
        assert set_mean(found).se == pytest.approx(wanted, abs=1e-12)


def rows_of(name, problem_id, sampled, greedy=0, cluster=None):
    base = {"set": name, "problem": problem_id, "cluster": cluster or problem_id, "method": "boxed"}
    made = []
    for r, (score, label) in enumerate([(greedy, 0), *sampled]):
        status = "correct" if score else ("wrong" if label is not None else "no_answer")
        made.append(base | {"response": r, "greedy": r == 0, "score": float(score), "status": status, "class": label,
                            "n_tokens": 10 * r, "truncated": label is None})  # fmt: skip
    return made


def test_a_scorecard_by_hand():
    """Two problems of a, one of b, n=4; every number worked out."""
    rows = [
        *rows_of("a", "a1", [(1, 0), (1, 0), (0, 1), (0, None)], greedy=1),
        *rows_of("a", "a2", [(0, 1), (0, 1), (0, 2), (1, 0)]),
        *rows_of("b", "b1", [(0, 1), (1, 0), (0, None), (0, None)]),
    ]
    card = scorecard(rows)
    assert (card["n"], list(card["sets"])) == (4, ["a", "b"])
    a, b = card["sets"]["a"], card["sets"]["b"]
    assert (a["average"], a["greedy"], a["majority"]) == (0.375, 0.5, 0.5)
    assert a["pass_at_k"] == {1: 0.375, 2: pytest.approx((5 / 6 + 1 / 2) / 2), 4: 1.0}
    assert a["majority_at_k"] == {1: 0.375, 2: pytest.approx((2 / 3 + 1 / 4) / 2), 4: 0.5}
    assert a["se"] == pytest.approx(0.125)
    assert (a["truncated"], a["unanswered"], a["length_mean"]) == (0.125, 0.125, 25.0)
    assert (b["average"], b["majority"], b["problems"]) == (0.25, 0.5, 1)
    assert card["means"]["macro"]["average"] == pytest.approx((0.375 + 0.25) / 2)
    assert card["means"]["item_weighted"]["average"] == pytest.approx(1 / 3)
    assert card["means"]["macro"]["greedy"] == 0.25


def test_without_samples_the_greedy_responses_are_judged():
    card = scorecard([*rows_of("a", "a1", [], greedy=1), *rows_of("a", "a2", [])])
    assert (card["n"], card["sets"]["a"]["average"], card["sets"]["a"]["majority"]) == (0, 0.5, None)
    assert (card["sets"]["a"]["pass_at_k"], card["sets"]["a"]["majority_at_k"]) == ({}, {})


def test_ungraded_responses_are_counted_and_score_nothing():
    rows = rows_of("a", "a1", [(0, None), (1, 0)])
    rows[1]["status"] = "timeout"
    (found,) = problems(rows)
    assert (found.ungraded, found.average) == (1, 0.5)
