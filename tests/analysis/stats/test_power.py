"""Minimal detectable effects and seeds needed: the study's table, simulation, and what more seeds can do."""

from math import inf, isinf, isnan, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student

from delaysim.analysis.stats import (
    Components,
    crossed,
    estimate,
    mde,
    over_seeds,
    paired_questions,
    power_of,
    seeds_for_width,
    seeds_needed,
)

QUESTION_SE = 0.65
STUDY = [
    (0.5, 0.0, (2.2, 2.0, 2.0, 1.9)),
    (0.5, 0.8, (1.9, 1.9, 1.9, 1.85)),
    (1.2, 0.0, (4.3, 3.1, 2.6, 2.4)),
    (1.2, 0.5, (3.1, 2.5, 2.2, 2.1)),
    (1.2, 0.8, (2.3, 2.1, 2.0, 1.95)),
    (3.0, 0.0, (12.3, 7.0, 5.1, 4.5)),
    (3.0, 0.5, (8.3, 5.0, 3.8, 3.4)),
    (3.0, 0.8, (4.9, 3.3, 2.7, 2.55)),
]
"""Seed sd per method [points], correlation by pairing, MDE at 3, 5, 8 and 10 seeds of 500 problems."""


def parts(sd, correlation, seeds):
    return Components(2 * sd**2 * (1 - correlation) / seeds, QUESTION_SE**2, 0.0, seeds, 500, 499.0)


@pytest.mark.parametrize(("sd", "correlation", "wanted"), STUDY)
def test_the_studys_table(sd, correlation, wanted):
    """Its values add two quantiles of t, exact to 1 % from five seeds on, and to 4 % at three."""
    for seeds, value in zip((3, 5, 8, 10), wanted, strict=True):
        of = parts(sd, correlation, seeds)
        se, df = sqrt(of.variance), of.df
        added = (student.ppf(0.975, df) + student.ppf(0.8, df)) * se
        assert added == pytest.approx(value, abs=0.06)
        assert mde(se, df) == pytest.approx(added, rel=0.045 if seeds == 3 else 0.01)


@pytest.mark.parametrize("df", [2, 4, 9, 40])
def test_an_effect_of_the_mde_is_found_four_times_in_five(df):
    rng = np.random.default_rng(df)
    x = rng.standard_normal((40_000, df + 1)) + mde(1 / sqrt(df + 1), df)
    t = x.mean(1) / (x.std(1, ddof=1) / sqrt(df + 1))
    assert np.mean(t > student.ppf(0.975, df)) == pytest.approx(0.8, abs=0.01)


@settings(max_examples=30, deadline=None)
@given(st.floats(1e-3, 5), st.floats(1.5, 300), st.sampled_from([0.5, 0.8, 0.9]), st.sampled_from([0.05, 0.02, 0.001]))
def test_power_at_the_mde_is_the_power(se, df, power, alpha):
    assert power_of(mde(se, df, power, alpha), se, df, alpha) == pytest.approx(power, abs=1e-4)


def test_without_spread_everything_is_seen_and_one_seed_sees_nothing():
    assert mde(0.0, 4) == 0
    assert (power_of(0.1, 0.0, 4), power_of(0.0, 0.0, 4)) == (1, 0.025)
    one = paired_questions([0.1, 0.2, 0.3])
    assert all(isnan(value) for value in (mde(one.se, one.df), power_of(0.1, one.se, one.df), seeds_needed(one)))
    assert isnan(seeds_for_width(one, 0.01))


def of(sd, correlation, seeds, mean=3.6):
    return estimate(mean, parts(sd, correlation, seeds))


def test_seeds_that_settle_the_papers_gap():
    """+3.6 at D = 128: four paired seeds if sd is 1.2 a method; +20 needs two or three; +.11 none can settle."""
    assert seeds_needed(of(1.2, 0.0, 3)) == 4
    assert seeds_needed(of(1.2, 0.0, 3), 20.0) in (2, 3)
    assert seeds_needed(of(1.2, 0.0, 3), 0.11) == inf
    assert seeds_needed(of(1.2, 0.0, 3), 0.83) == inf


@settings(max_examples=40, deadline=None)
@given(st.floats(0.2, 4), st.floats(0, 0.9), st.integers(2, 12), st.floats(0.5, 12))
def test_the_number_found_is_the_first_that_is_enough(sd, correlation, seeds, effect):
    found, components = seeds_needed(of(sd, correlation, seeds), effect), parts(sd, correlation, seeds)
    powers = [power_of(effect, sqrt(at.variance), at.df) for at in map(components.with_seeds, range(2, 40))]
    assert powers == sorted(powers)
    enough = [s for s, power in zip(range(2, 40), powers, strict=True) if power >= 0.8]
    assert found == enough[0] if enough else found >= 40


def test_more_seeds_cannot_pass_the_problems():
    """With ever more seeds the error is that of the problems: an MDE of 2.8 times their .65."""
    assert isinf(seeds_needed(of(1.2, 0.0, 5), 1.80))
    assert seeds_needed(of(1.2, 0.0, 5), 1.90) < 200
    assert isinf(seeds_for_width(of(1.2, 0.0, 5), 1.96 * QUESTION_SE))
    assert seeds_for_width(of(1.2, 0.0, 5), 2.2 * QUESTION_SE) < 200


def test_over_seeds_alone_there_is_no_floor():
    found = over_seeds([0.01, 0.02, 0.03])
    assert seeds_needed(found, 0.0001) == pytest.approx((1.96 + 0.8416) ** 2 * 1e4, rel=1e-3)
    assert seeds_for_width(found, 0.001) == pytest.approx(1.96**2 * 100, rel=0.01)


def test_no_effect_needs_more_than_there_are():
    assert seeds_needed(of(1.2, 0.0, 5), 0.0) == inf


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 6), st.integers(2, 30), st.integers(0, 10**6))
def test_prediction_at_its_own_number_of_seeds(seeds, problems, key):
    """The components predict the very error they were taken from, whichever of them came out negative."""
    found = crossed(np.random.default_rng(key).normal(size=(seeds, problems))).components
    assert found.with_seeds(seeds).variance == pytest.approx(found.variance, rel=1e-9)
    fewer, more = (found.with_seeds(n).variance for n in (seeds, 4 * seeds))
    assert found.variance / 4 * (1 - 1e-9) <= more <= fewer * (1 + 1e-9)


def test_prediction_of_alike_means_of_unlike_numbers():
    found = crossed([[0, 1], [1, 0]]).components
    assert [found.with_seeds(n).variance for n in (2, 8)] == pytest.approx([0.25, 0.0625])


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 6), st.integers(1, 30), st.integers(0, 10**6), st.floats(0.1, 4))
def test_needed_and_detectable_agree(seeds, problems, key, times):
    """The seeds at hand are enough for an effect exactly where it is no less than their MDE."""
    found = crossed(np.random.default_rng(key).normal(size=(seeds, problems)))
    least = mde(found.se, found.df)
    if not 0.999 < times < 1.001:
        assert (seeds_needed(found, times * least) <= seeds) == (times >= 1)
        assert (seeds_for_width(found, times * found.half_width) <= seeds) == (times >= 1)


def test_prediction_is_what_more_seeds_give():
    """Four seeds of an experiment, and the error of sixteen: over many tries the prediction is right on average."""
    rng = np.random.default_rng(8)
    tries = []
    for _ in range(300):
        d = rng.normal(0, 0.02, (16, 1)) + rng.normal(0, 0.1, 200) + rng.normal(0, 0.2, (16, 200))
        tries.append((crossed(d[:4]).components.with_seeds(16).variance, crossed(d).components.variance))
    predicted, measured = np.mean(tries, axis=0)
    assert predicted == pytest.approx(measured, rel=0.1)
