"""pass@1, its clustered standard error, paired gains and the collapse rule, against numbers worked out by hand."""

from math import isnan, sqrt

import pytest

from delaysim.accuracy import Accuracy, half_width, has_collapsed, paired_gain, summarise

T_975 = {1: 12.706204736, 3: 3.182446305, 255: 1.969310}
"""Student's t, 97.5 %, from a table, by degrees of freedom."""


def rows(update, right, greedy=None, length=10):
    """Rows of one evaluation: `right[p]` holds the sampled responses of problem p, 1 = right, t = truncated too."""
    made = []
    for p, responses in enumerate(right):
        first = {"update": update, "problem": f"p{p}", "response": 0, "greedy": True}
        made.append(first | {"correct": bool(greedy[p]) if greedy else False, "truncated": True, "length": 99})
        for r, correct in enumerate(responses, 1):
            row = {"update": update, "problem": f"p{p}", "response": r, "greedy": False, "correct": bool(correct)}
            made.append(row | {"truncated": r == 2, "length": length + r})
    return made


def test_pass1_and_its_standard_error_are_by_problem():
    """Shares 1, .5, .5, 0: mean .5, variance (.25 + 0 + 0 + .25)/3 = 1/6, standard error sqrt(1/24)."""
    (found,) = summarise(rows(20, [[1, 1], [1, 0], [0, 1], [0, 0]], greedy=[1, 0, 0, 0]))
    assert (found.update, found.problems, found.pass1, found.greedy) == (20, 4, 0.5, 0.25)
    assert found.se == pytest.approx(sqrt(1 / 24), rel=1e-12)
    assert found.se != pytest.approx(sqrt(0.25 / 8), rel=0.05), "eight independent responses are not what was seen"
    assert found.half_width == pytest.approx(T_975[3] * sqrt(1 / 24), rel=1e-9)


def test_uneven_problems_weigh_alike():
    (found,) = summarise(rows(0, [[1, 1, 1, 1], [0]]))
    assert found.pass1 == 0.5


def test_truncation_and_length_are_of_the_sampled_responses():
    (found,) = summarise(rows(0, [[1, 0], [0, 0]]))
    assert (found.truncated, found.length_mean) == (0.5, 11.5)


def test_without_samples_the_greedy_responses_are_judged():
    """3 of 4 right: variance .1875 * 4/3 = .25, standard error .25."""
    (found,) = summarise(rows(0, [[], [], [], []], greedy=[1, 1, 1, 0]))
    assert (found.pass1, found.greedy, found.truncated, found.length_mean) == (0.75, 0.75, 1.0, 99.0)
    assert found.se == pytest.approx(0.25, rel=1e-12)


def test_one_accuracy_per_evaluation_in_order():
    history = summarise([*rows(0, [[0, 0], [1, 1]]), *rows(20, [[1, 1], [1, 1]]), *rows(40, [[1, 0], [1, 1]])])
    assert [(a.update, a.pass1) for a in history] == [(0, 0.5), (20, 1.0), (40, 0.75)]
    assert history[1].se == 0.0


def test_the_paired_gain_has_the_spread_of_the_differences():
    """Gains 0, 0, .5, .5: mean .25, variance .25/3, standard error sqrt(1/48); each side alone spreads more."""
    before = rows(0, [[1, 1], [0, 0], [0, 0], [1, 0]])
    after = rows(20, [[1, 1], [0, 0], [1, 0], [1, 1]])
    gain, half = paired_gain(before, after)
    assert gain == pytest.approx(0.25, rel=1e-12)
    assert half == pytest.approx(T_975[3] * sqrt(1 / 48), rel=1e-9)
    assert half < summarise(after)[0].half_width < 2


def test_the_paired_gain_uses_the_problems_both_have():
    before = rows(0, [[1, 1], [0, 0]])
    after = [row for row in rows(20, [[1, 1], [1, 1], [1, 1]]) if row["problem"] != "p0"]
    gain, half = paired_gain(before, after)
    assert gain == 1.0
    assert isnan(half), "one shared problem has no interval"


@pytest.mark.parametrize("clusters", [2, 4, 256])
def test_half_width_is_a_t_interval(clusters):
    assert half_width(0.1, clusters) == pytest.approx(0.1 * T_975[clusters - 1], rel=1e-6)


def test_half_width_needs_two_clusters():
    assert isnan(half_width(0.1, 1))


def history(*pass1, se=0.1, first=0):
    return [Accuracy(first + 20 * i, p, se, 256, p, 0.0, 10.0) for i, p in enumerate(pass1)]


@pytest.mark.parametrize(
    ("pass1", "collapsed"),
    [
        ((0.5, 0.29, 0.29, 0.29), True),
        ((0.5, 0.29, 0.29), False),
        ((0.5, 0.29, 0.29, 0.31, 0.29, 0.29), False),
        ((0.5, 0.6, 0.1, 0.1, 0.1, 0.6), True),
        ((0.5, 0.6, 0.6, 0.1, 0.1), False),
        ((0.5, 0.4, 0.4, 0.4, 0.4), False),
        ((0.5,), False),
        ((), False),
    ],
)
def test_the_collapse_rule(pass1, collapsed):
    """Three looks in a row below .5 - 2*.1 = .3, wherever they stand, the base itself not counted."""
    assert has_collapsed(history(*pass1), 3, 2.0) is collapsed


def test_exactly_at_the_floor_is_not_below_it():
    at, under = history(0.5, 0.25, se=0.125), history(0.5, 0.2499, se=0.125)
    assert not has_collapsed(at, 1, 2.0)
    assert has_collapsed(under, 1, 2.0)


def test_the_base_never_counts_as_a_look_and_is_needed():
    assert not has_collapsed(history(0.5, 0.0, se=-0.1), 2, 2.0)
    assert not has_collapsed(history(0.5, 0.0, 0.0, 0.0, first=20), 3, 2.0)
