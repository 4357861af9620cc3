"""Holm's correction, equivalence, robust aggregates."""

from math import isnan, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu, ttest_1samp

from delaysim.analysis.stats import (
    crossed,
    equivalent,
    holm,
    iqm,
    no_worse,
    over_seeds,
    paired_questions,
    probability_of_improvement,
    tost,
)

PS = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def test_holm_by_hand():
    """.01 x 4, .02 x 3, then .03 x 2 = .06 and .04 x 1 raised to the .06 before it."""
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.6, 0.7]).tolist() == [1, 1]
    assert holm([]).tolist() == []


def test_what_was_not_tested_is_no_member_of_the_family():
    found = holm([0.02, nan, 0.03])
    assert found[[0, 2]] == pytest.approx([0.04, 0.04])
    assert isnan(found[1])


@settings(max_examples=60)
@given(PS, st.randoms(use_true_random=False))
def test_holm_keeps_order_and_lies_between_none_and_bonferroni(p, random):
    found = holm(p)
    assert (found >= np.array(p)).all()
    assert (found <= np.minimum(1, len(p) * np.array(p)) + 1e-12).all()
    assert (np.diff(found[np.argsort(p, kind="stable")]) >= 0).all()
    order = random.sample(range(len(p)), len(p))
    assert holm(np.array(p)[order]) == pytest.approx(found[order])


@settings(max_examples=60)
@given(PS, st.floats(0.001, 0.5))
def test_holm_rejects_what_the_procedure_rejects(p, alpha):
    """Walk up the sorted p while p_i <= alpha/(m - i + 1), as Holm (1979) writes it."""
    rejected = np.zeros(len(p), bool)
    for rank, i in enumerate(np.argsort(p, kind="stable")):
        if p[i] * (len(p) - rank) > alpha:
            break
        rejected[i] = True
    assert (holm(p) <= alpha).tolist() == rejected.tolist()


X = np.array([0.004, -0.002, 0.006, 0.001, 0.003, -0.001])


def test_two_one_sided_tests_are_scipys():
    of = over_seeds(X)
    above = ttest_1samp(X, -0.01, alternative="greater").pvalue
    below = ttest_1samp(X, 0.01, alternative="less").pvalue
    assert tost(of, 0.01) == pytest.approx(max(above, below), rel=1e-9)
    assert no_worse(of, 0.01) == pytest.approx(above, rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.floats(-0.03, 0.03), st.floats(0.001, 0.05), st.sampled_from([0.01, 0.025, 0.05]))
def test_equivalence_is_the_interval_inside_the_margin(shift, margin, alpha):
    of = over_seeds(X + shift)
    inside = of.at(1 - 2 * alpha)
    assert equivalent(of, margin, alpha) == (-margin <= inside.low and inside.high <= margin)
    assert (no_worse(of, margin) <= alpha) == (inside.low >= -margin)


def test_the_default_level_reads_the_interval_that_is_printed():
    of = over_seeds(X)
    assert equivalent(of, max(abs(of.low), of.high) * 1.001)
    assert not equivalent(of, max(abs(of.low), of.high) * 0.999)


def test_a_large_p_is_no_equivalence():
    """Two noisy seeds: p is large, and so is what the difference may be."""
    of = over_seeds([0.1, -0.09])
    assert of.p > 0.9
    assert not equivalent(of, 0.02)


def test_one_seed_shows_no_equivalence_and_identical_runs_do():
    one = paired_questions(np.zeros(400))
    assert not equivalent(one, 0.5)
    assert isnan(no_worse(one, 0.5))
    same = crossed(np.zeros((3, 400)))
    assert (equivalent(same, 0.001), tost(same, 0.001)) == (True, 0)
    assert tost(crossed(np.full((3, 4), 0.25)), 0.25) == 0.5


@pytest.mark.parametrize("margin", [0.0, -0.02, nan])
def test_a_margin_is_above_none(margin):
    for test in (tost, no_worse, equivalent):
        with pytest.raises(ValueError, match="margin"):
            test(over_seeds(X), margin)


def test_iqm_cuts_a_quarter_at_each_end():
    assert iqm([0, 1, 2, 3, 4, 5, 60, 100]) == pytest.approx(3.5)
    x = np.arange(16.0).reshape(4, 4)
    assert iqm(x) == pytest.approx(7.5)
    assert iqm(np.stack([x, 2 * x])) == pytest.approx([7.5, 15.0])


def test_probability_of_improvement_is_the_u_statistic():
    a, b = np.array([0.4, 0.5, 0.5, 0.9]), np.array([0.5, 0.3, 0.4])
    assert probability_of_improvement(a, b) == pytest.approx(mannwhitneyu(a, b).statistic / 12)
    assert probability_of_improvement(a, b) + probability_of_improvement(b, a) == pytest.approx(1)
    assert probability_of_improvement(np.stack([a, a - 1]), np.stack([b, b])).tolist() == pytest.approx([9.5 / 12, 0])
