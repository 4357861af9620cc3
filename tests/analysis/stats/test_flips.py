"""Exact sign-flip tests against enumeration, their floor, and their size."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import permutation_test

from delaysim.analysis.stats import max_t, sign_flip


@pytest.mark.parametrize(("seeds", "floor"), [(2, 0.5), (5, 0.0625), (6, 0.03125), (8, 0.0078125)])
def test_p_has_a_floor(seeds, floor):
    """Every difference of one sign: 2^(1-S), so five seeds cannot reach .05."""
    assert sign_flip(np.linspace(0.01, 0.02, seeds)) == floor
    assert sign_flip(np.full(seeds, 0.1)) == floor


def test_one_seed_and_no_difference_have_p_one():
    assert sign_flip([0.3]) == 1
    assert sign_flip([0.0, 0.0, 0.0]) == 1


@pytest.mark.parametrize("x", [[-0.9, 0.5, -0.5, 0.4, 0.5], [-0.6, -0.4, 0.9, -0.3, 0.4], [0.2, -0.4, 0.5, -0.2, -0.1]])
def test_differences_that_add_up_to_nothing_have_p_one(x):
    """Whatever is left of their sum by rounding."""
    assert sign_flip(x) == 1
    assert max_t(np.column_stack([x, x])).tolist() == [1, 1]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(-9, 9), min_size=2, max_size=7))
def test_p_by_enumeration(x):
    flipped = [abs(sum(s * v for s, v in zip(signs, x, strict=True))) for signs in product((1, -1), repeat=len(x))]
    wanted = sum(value >= abs(sum(x)) for value in flipped) / len(flipped)
    assert sign_flip([v / 10 for v in x]) == pytest.approx(wanted, abs=1e-12)


def test_p_is_scipys():
    x = np.array([0.31, -0.04, 0.22, 0.5, -0.17, 0.09, 0.28])
    found = permutation_test((x,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert sign_flip(x) == pytest.approx(found.pvalue, abs=1e-12)


def test_a_family_of_one_is_the_plain_test_and_copies_cost_nothing():
    """Comparisons that are the same comparison need no correction: what Holm cannot know."""
    x = np.array([0.3, 0.2, -0.1, 0.4, 0.25, 0.1])
    assert max_t(x[:, None]) == pytest.approx([sign_flip(x)])
    assert max_t(np.column_stack([x, 3 * x, -x])) == pytest.approx([sign_flip(x)] * 3)


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 6), st.integers(1, 4), st.integers(0, 10**6))
def test_max_t_by_its_definition(seeds, family, key):
    """Step-down: the m-th largest |t| against the largest |t| among it and the smaller ones, never falling."""
    x = np.random.default_rng(key).normal(0.5, 1, (seeds, family))

    def t(table):
        return np.abs(table.mean(0)) / table.std(0, ddof=1)

    observed = t(x)
    order = np.argsort(-observed)
    wanted, last = np.empty(family), 0.0
    for rank, column in enumerate(order):
        rest = order[rank:]
        flips = [t(x * np.array(s)[:, None])[rest].max() for s in product((1, -1), repeat=seeds)]
        last = wanted[column] = max(last, np.mean(np.array(flips) >= observed[column] * (1 - 1e-9)))
    assert max_t(x) == pytest.approx(wanted, abs=1e-12)


def test_order_of_seeds_and_sign_and_scale_change_nothing():
    x = np.random.default_rng(2).normal(0.4, 1, (7, 3))
    wanted = max_t(x)
    assert max_t(x[::-1]) == pytest.approx(wanted)
    assert max_t(-x) == pytest.approx(wanted)
    assert max_t(x * [1, 20, 0.01]) == pytest.approx(wanted)
    assert max_t(x[:, ::-1])[::-1] == pytest.approx(wanted)


def test_the_family_wise_error_is_at_most_the_level():
    """Eight seeds, six correlated comparisons, none real: some p <= .05 in at most 5 % of experiments."""
    rng = np.random.default_rng(4)
    found = [max_t(rng.normal(size=(8, 6)) + rng.normal(size=(8, 1))).min() <= 0.05 for _ in range(1000)]
    assert 0.02 <= np.mean(found) <= 0.065


@pytest.mark.parametrize("bad", [np.zeros((21, 1)), np.zeros((0, 2)), np.full((3, 1), np.nan), np.zeros(4)])
def test_what_cannot_be_enumerated_is_refused(bad):
    with pytest.raises(ValueError, match="1 to 20 seeds"):
        max_t(bad)
