"""Trained against generated: numbers by hand, exact identities, and scipy's own statistic."""

from itertools import combinations
from math import isnan, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp

from delaysim.clock.bias import bias, steady, tilt
from delaysim.clock.ledger import FATES


def fates(*names):
    return np.array([FATES.index(name) for name in names], np.int8)


@st.composite
def populations(draw):
    groups, size = draw(st.integers(1, 40)), draw(st.integers(1, 5))
    values = draw(st.lists(st.integers(1, 30), min_size=groups * size, max_size=groups * size))
    fate = draw(st.lists(st.sampled_from(FATES), min_size=groups, max_size=groups))
    return np.array(values).reshape(groups, size), fates("trained", *fate[1:])


def test_means_shares_and_parts_by_hand():
    """Group means 2, 10, 4, 2: all 4.5, trained 2. Aged: 1/4 * (1 - 10/4.5) / (1/2), still there: 4 in place of 10."""
    found = tilt(np.array([[1, 3], [10, 10], [4, 4], [2, 2]]), fates("trained", "age", "never", "trained"))
    assert (found.generated, found.trained, found.ratio) == (4.5, 2.0, pytest.approx(4 / 9))
    assert found.parts == pytest.approx({"age": -11 / 18, "never": 1 / 18})
    assert (found.shares, found.means) == (
        {"trained": 0.5, "never": 0.25, "age": 0.25},
        {"trained": 2.0, "never": 4.0, "age": 10.0},
    )


@given(populations())
@settings(max_examples=30, deadline=None)
def test_the_parts_of_the_fates_add_up_to_the_bias(population):
    found = tilt(*population)
    assert sum(found.parts.values()) == pytest.approx(found.ratio - 1, abs=1e-12)


@given(populations(), st.floats(0.1, 3.0))
@settings(max_examples=30, deadline=None)
def test_whole_and_real_values_are_treated_alike(population, unit):
    whole, real = tilt(*population), tilt(population[0] * unit, population[1])
    assert real.survival == pytest.approx(whole.survival)
    assert (real.ks, real.ratio, real.chance) == pytest.approx((whole.ks, whole.ratio, whole.chance), nan_ok=True)


@given(populations())
@settings(max_examples=30, deadline=None)
def test_the_distance_is_that_of_two_samples(population):
    values, fate = population
    expected = ks_2samp(values[fate == 0].ravel(), values.ravel()).statistic
    assert tilt(values, fate).ks == pytest.approx(expected, abs=1e-12)


@given(populations())
@settings(max_examples=30, deadline=None)
def test_survival_counts_every_trained_response_once(population):
    values, fate = population
    tenths = np.array(tilt(values, fate).survival) * values.size / 10
    assert tenths.sum() == pytest.approx((fate == 0).sum() * values.shape[1])
    assert ((tenths >= -1e-9) & (tenths <= values.size / 10 + 1e-9)).all()


def test_survival_without_ties_is_a_count_per_tenth():
    """Lengths 1..40, one per group: what is longer than 30 is dropped, and every fourth of the rest."""
    lengths = np.arange(1, 41)
    kept = (lengths <= 30) & (lengths % 4 > 0)
    found = tilt(lengths[:, None], np.where(kept, FATES.index("trained"), FATES.index("timeout")))
    assert found.survival == pytest.approx([0.75] * 7 + [0.5, 0.0, 0.0])


def test_equal_values_survive_alike_whatever_their_order():
    found = tilt(np.full((10, 3), 7), fates(*["queue"] * 4, *["trained"] * 6))
    assert found.survival == pytest.approx([0.6] * 10)
    assert (found.ks, found.ratio, found.chance) == (0.0, 1.0, 0.0)


def test_chance_is_the_spread_over_every_choice_of_trained_groups():
    """All 84 choices of 3 groups out of 9 have the same standard error, to the last digit."""
    values = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5])[:, None]
    expected, ratios = sqrt(54 / 8) / 4 * sqrt((1 - 3 / 9) / 3), []
    for chosen in combinations(range(9), 3):
        fate = np.array([0 if group in chosen else 2 for group in range(9)])
        ratios.append(tilt(values, fate).ratio)
        assert tilt(values, fate).chance == pytest.approx(expected)
    assert np.std(ratios) == pytest.approx(expected)


def test_a_run_that_trained_nothing_has_no_trained_mean():
    found = tilt(np.array([[1, 2]]), fates("never"))
    assert all(map(isnan, (found.trained, found.ratio, found.ks, found.parts["never"])))
    assert found.survival == (0.0,) * 10


def rows(launch, version, consumed, dropped, fate, delay):
    nan = float("nan")
    times = {"launch": launch, "consumed": consumed, "dropped": dropped}
    units = {name: np.array([nan if t is None else t for t in column], float) for name, column in times.items()}
    return {
        **units,
        "attempt": np.zeros(len(version), int),
        "version": np.array(version),
        "fate": fates(*fate),
        "delay": np.array(delay),
    }


MADE = rows(
    launch=[0, 0, 10, 20, 30, 40],
    version=[0, 0, 2, 3, 4, 5],
    consumed=[5, 30, None, 30, None, None],
    dropped=[None, None, 20, None, None, None],
    fate=["trained", "trained", "age", "trained", "never", "never"],
    delay=[1, 5, -1, 3, -1, -1],
)


def test_the_steady_state_starts_after_the_look_ahead_and_ends_in_time_to_follow_a_group():
    """Groups took 5, 30, 10 and 10 units to be decided, and the last of it is at 30: too soon for nearly 30 units."""
    assert steady(MADE, 1).tolist() == [False] * 6
    later = {**MADE, "consumed": np.array([5, 30, np.nan, 30, 60, np.nan]), "delay": np.array([1, 5, -1, 3, 2, -1])}
    assert steady(later, 1).tolist() == [False, False, True, True, True, False]
    assert steady(later, 2).tolist() == [False, False, False, True, True, False]


def test_without_a_gate_the_mean_delay_stands_for_the_look_ahead():
    later = {**MADE, "consumed": np.array([5, 30, np.nan, 30, 60, np.nan]), "delay": np.array([1, 5, -1, 3, 1, -1])}
    assert steady(later, None).tolist() == [False, False, False, True, True, False]


def test_groups_still_in_the_system_count_only_in_the_whole_run():
    """Lengths 1..6: decided are 1, 2, 3 and 4, of which 3 was dropped."""
    found = bias(MADE, np.arange(1, 7)[:, None], 1)
    assert (found.run.generated, found.decided.generated, found.decided.trained) == (3.5, 2.5, pytest.approx(7 / 3))
    assert found.steady is None
    assert found.policy is found.decided
    assert found.decided.parts == pytest.approx({"age": 0.25 * (1 - 3 / 2.5) / 0.75})


def test_prompts_that_go_again_are_compared_with_their_first_groups():
    """Decided are 1, 2, 3 and 4; 2 and 4 are second attempts: the trained mean 7/3 against 1 and 3."""
    found = bias({**MADE, "attempt": np.array([0, 1, 0, 1, 0, 0])}, np.arange(1, 7)[:, None], 1)
    assert (found.first, found.fresh_ratio) == (2.0, pytest.approx(7 / 6))


def test_groups_that_were_never_generated_are_no_part_of_the_population():
    found = bias(MADE, np.arange(1, 5)[:, None], 1)
    assert (found.run.generated, found.run.shares["trained"]) == (2.5, 0.75)


def test_without_drops_what_was_decided_is_no_biased_sample():
    values = np.array([[3], [9], [2]])
    found = bias({**MADE, "fate": fates("trained", "never", "trained", "never", "never", "never")}, values, 1)
    assert (found.decided.ratio, found.run.ratio) == (1.0, pytest.approx(2.5 / (14 / 3)))
    assert found.run.chance == pytest.approx(sqrt(43 / 3) / (14 / 3) * sqrt((1 - 2 / 3) / 2))


def test_counting_in_pieces_changes_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    values, fate = rng.integers(1, 30, size=(50, 3)), rng.integers(len(FATES), size=50)
    whole = tilt(values, fate)
    monkeypatch.setattr("delaysim.clock.bias.PIECE", 7)
    assert repr(tilt(values, fate)) == repr(whole)
