"""The crossed interval against hand-worked tables, its definition, other libraries, and what must not change it."""

from math import inf, isnan, sqrt

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import t as student
from scipy.stats import ttest_1samp

from delaysim.analysis.stats import Components, crossed, estimate, over_seeds, paired_questions, set_mean
from delaysim.analysis.stats.estimates import p_value, quantile
from delaysim.metrics import Problem

TABLES = arrays(float, st.tuples(st.integers(2, 5), st.integers(2, 7)), elements=st.integers(-8, 8).map(float))


def mean_squares(d):
    """MS of seeds, problems and the rest of a (S, Q) table, by their definition, one number at a time."""
    seeds, questions = len(d), len(d[0])
    grand = sum(map(sum, d)) / seeds / questions
    rows = [sum(row) / questions for row in d]
    columns = [sum(row[q] for row in d) / seeds for q in range(questions)]
    rest = sum((d[s][q] - rows[s] - columns[q] + grand) ** 2 for s in range(seeds) for q in range(questions))
    return (
        questions * sum((r - grand) ** 2 for r in rows) / (seeds - 1),
        seeds * sum((c - grand) ** 2 for c in columns) / (questions - 1),
        rest / (seeds - 1) / (questions - 1),
    )


def test_a_table_worked_by_hand():
    """[[1 2 3] [3 2 7]]: MS 6, 6, 2, Var = (6 + 6 - 2)/6, df = (5/3)^2/(1/1 + 1/2 + (1/3)^2/2) = 25/14."""
    found = crossed([[1, 2, 3], [3, 2, 7]])
    assert (found.mean, found.seeds, found.clusters, found.seed_variance) == (3, 2, 3, True)
    assert found.se == pytest.approx(sqrt(10 / 6), rel=1e-12)
    assert found.df == pytest.approx(25 / 14, rel=1e-12)
    assert found.half_width == pytest.approx(student.ppf(0.975, 25 / 14) * sqrt(10 / 6), rel=1e-9)
    assert found.p == pytest.approx(2 * student.sf(3 / sqrt(10 / 6), 25 / 14), rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(TABLES)
def test_mean_squares_and_satterthwaite_by_definition(d):
    seeds, questions = d.shape
    ms_s, ms_q, ms_e = mean_squares(d.tolist())
    variance = max(ms_s + ms_q - ms_e, ms_s, ms_q) / d.size
    assume(variance > 1e-9)
    found = crossed(d)
    assert found.se == pytest.approx(sqrt(variance), rel=1e-9)
    pieces = ((ms_s, seeds - 1), (ms_q, questions - 1), (ms_e, (seeds - 1) * (questions - 1)))
    wanted = variance**2 / sum((ms / d.size) ** 2 / df for ms, df in pieces)
    assert found.df == pytest.approx(max(wanted, min(seeds, questions) - 1), rel=1e-9)


def test_components_that_come_out_negative_are_taken_as_none():
    """Seeds alike, MS_S = 0: the error is that of the problems' means, and no smaller."""
    d = np.array([[1.0, 5, 3, 3], [2, 4, 4, 2], [3, 3, 5, 1]])
    found, (ms_s, ms_q, ms_e) = crossed(d), mean_squares(d.tolist())
    assert ms_s == 0 < ms_e
    assert found.se == pytest.approx(sqrt(ms_q / 12), rel=1e-12)


def test_means_all_alike_of_unlike_numbers_are_not_certain():
    """[[0 1] [1 0]]: every seed's and every problem's mean is .5, which is no knowledge of the next seed."""
    found = crossed([[0, 1], [1, 0]])
    assert (found.mean, found.se, found.df) == (0.5, 0.5, 1)
    assert found.p == pytest.approx(0.5, rel=1e-9)  # t = 1 with one degree of freedom


@pytest.mark.parametrize("value", [0.1, -1 / 3])
@pytest.mark.parametrize("shape", [(2, 2), (3, 40), (8, 1)])
def test_equal_differences_have_no_error_and_a_p(value, shape):
    found = crossed(np.full(shape, value))
    assert (found.se, found.p, found.low, found.high) == (0, 0, found.mean, found.mean)


@pytest.mark.parametrize("shape", [(2, 2), (3, 40), (8, 1)])
def test_identical_runs_have_p_one(shape):
    found = crossed(np.zeros(shape))
    assert (found.mean, found.se, found.p) == (0, 0, 1)


def test_one_seed_knows_problems_only():
    d = np.array([0.0, 0.25, 0.5, -0.25, 1.0])
    found = paired_questions(d)
    half = student.ppf(0.975, 4) * d.std(ddof=1) / sqrt(5)
    assert (found.low, found.high) == pytest.approx((d.mean() - half, d.mean() + half), rel=1e-9)
    assert isnan(found.p)
    assert isnan(found.df)
    assert not found.seed_variance


def test_one_problem_or_numbers_per_seed_are_the_t_test():
    x = np.array([0.03, -0.01, 0.04, 0.02])
    wanted = ttest_1samp(x, 0)
    low, high = wanted.confidence_interval(0.9)
    for found in (over_seeds(x, 0.9), crossed(x[:, None], confidence=0.9)):
        assert (found.p, found.low, found.high) == pytest.approx((wanted.pvalue, low, high), rel=1e-9)
        assert found.df == 3


def test_one_seed_of_one_problem_has_a_mean_and_nothing_else():
    found = crossed([[0.3]])
    assert found.mean == 0.3
    assert all(isnan(value) for value in (found.se, found.df, found.low, found.high, found.p))


def test_two_seeds_have_one_degree_of_freedom_where_seeds_rule():
    d = np.array([[0.0], [0.2]]) + np.linspace(-1e-3, 1e-3, 50)
    assert crossed(d).df == pytest.approx(1, abs=1e-3)
    assert crossed(d).se == pytest.approx(0.1, rel=1e-3)


@pytest.mark.parametrize("df", [0.5, 1.0, 2.29, 7.31])
def test_p_and_interval_agree_at_fractional_degrees_of_freedom(df):
    """p = 1 - confidence exactly where the interval ends at 0."""
    parts = Components(0.04, 0.0, 0.0, 2, 2, 1.0)
    edge = estimate(1.0, parts, 0.9)
    at_edge = estimate(edge.half_width, parts, 0.9)
    assert at_edge.p == pytest.approx(0.1, rel=1e-9)
    assert p_value(quantile(0.95, df) * 3, 3, df) == pytest.approx(0.1, rel=1e-7)
    assert quantile(0.95, df) == pytest.approx(student.ppf(0.95, df), rel=1e-7)


@settings(max_examples=40, deadline=None)
@given(TABLES, st.randoms(use_true_random=False), st.integers(1, 4))
def test_order_sign_and_scale(d, random, labels):
    """Seeds and problems in another order: nothing changes. A and B swapped: signs flip. Twice as large: twice."""
    clusters = np.array([random.randrange(labels) for _ in range(d.shape[1])])
    seeds, questions = (random.sample(range(n), n) for n in d.shape)
    found, other = crossed(d, clusters), crossed(d[seeds][:, questions], clusters[questions])
    for name in ("mean", "se", "df", "low", "high", "p"):
        assert getattr(other, name) == pytest.approx(getattr(found, name), rel=1e-7, abs=1e-9, nan_ok=True)
    swapped, twice = crossed(-d, clusters), crossed(2 * d, clusters)
    assert (swapped.mean, swapped.low, swapped.se) == pytest.approx((-found.mean, -found.high, found.se), nan_ok=True)
    assert (twice.mean, twice.se, twice.low) == pytest.approx(
        (2 * found.mean, 2 * found.se, 2 * found.low), nan_ok=True
    )
    assert (swapped.p, twice.p) == pytest.approx((found.p, found.p), nan_ok=True)


@settings(max_examples=40, deadline=None)
@given(TABLES, st.integers(2, 4))
def test_copies_of_every_problem_in_its_cluster_add_nothing(d, copies):
    """Equal clusters: the interval of the clusters' means."""
    many = np.repeat(d, copies, axis=1)
    found, wanted = crossed(many, np.repeat(np.arange(d.shape[1]), copies)), crossed(d)
    assert (found.mean, found.se, found.df) == pytest.approx((wanted.mean, wanted.se, wanted.df), rel=1e-9, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), min_size=2, max_size=30))
def test_one_seed_with_clusters_is_the_clustered_error_of_one_run(drawn):
    values, labels = [v / 4 for v, _ in drawn], [f"c{c}" for _, c in drawn]
    assume(len(set(labels)) > 1)
    problems = [Problem("a", label, 4, 0, v, v, 0.0, 0.0, 1.0, 0.0, 0) for v, label in zip(values, labels, strict=True)]
    found, wanted = paired_questions(values, labels), set_mean(problems)
    assert (found.mean, found.se, found.clusters) == pytest.approx((wanted.mean, wanted.se, wanted.clusters), abs=1e-12)


def test_an_effect_of_the_seed_is_all_the_seeds_where_clusters_differ_in_size():
    """d = seed effect + problem effect exactly: nothing is left over, whatever the clusters."""
    d = np.array([[0.1], [0.4], [-0.3]]) + np.array([0.0, 0.2, 0.1, 0.5, 0.3, 0.3])
    parts = crossed(d, [0, 0, 0, 1, 2, 2]).components
    assert parts.by_both == 0
    assert parts.by_seed == pytest.approx(np.var([0.1, 0.4, -0.3], ddof=1) / 3, rel=1e-9)


def test_the_error_with_unequal_clusters_by_its_definition():
    """Ratio linearisation, three clusters of 1, 2 and 3 problems, written out."""
    d = np.array([[1.0, 0, 2, 3, 1, 5], [2, 1, 0, 4, 4, 4]])
    groups, seeds, total, count = ([0], [1, 2], [3, 4, 5]), 2, 6, 3
    own = d.mean(1, keepdims=True)
    u = np.array([[count / total * sum((d - own)[s, q] for q in g) + own[s, 0] for g in groups] for s in range(seeds)])
    ms_s, ms_k, ms_e = mean_squares(u.tolist())
    found = crossed(d, [0, 1, 1, 2, 2, 2])
    assert found.mean == pytest.approx(d.mean(), rel=1e-12)
    assert found.se**2 == pytest.approx(max(ms_s + ms_k - ms_e, ms_s, ms_k) / seeds / count, rel=1e-9)


@pytest.mark.parametrize("bad", [[[0.1, np.nan]], [[0.1, inf]], [0.1, 0.2], [], [[[0.1]]]])
def test_what_is_no_table_is_refused(bad):
    with pytest.raises(ValueError, match=r"finite|seeds x problems"):
        crossed(bad)


def test_labels_that_do_not_fit_and_confidences_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="3 cluster labels for 2 problems"):
        crossed([[0.1, 0.2]], [1, 2, 3])
    with pytest.raises(ValueError, match="between 0 and 1"):
        crossed([[0.1, 0.2]], confidence=95)
