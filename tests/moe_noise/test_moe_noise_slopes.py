"""Slopes of spread against length: known ones are found again, and the interval holds them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delaysim.moe_noise.slopes import lengths, slope_of_mean

SHAPE = 48, 512


def noise(key: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(key).standard_normal(shape or SHAPE)


def of_flips(key: int) -> np.ndarray:
    """Large and rare: 3 % of tokens."""
    return noise(key) * (np.random.default_rng(key + 1).random(SHAPE) < 0.03)


@pytest.mark.parametrize("make", [noise, of_flips], ids=["normal", "rare"])
def test_independent_noise_falls_as_the_root_and_its_sum_grows_as_the_root(make):
    slope = slope_of_mean(make(0), 0)
    assert slope.value == pytest.approx(-0.5, abs=0.05)
    assert slope.low < -0.5 < slope.high
    assert slope.of_sum() == pytest.approx([slope.value + 1, slope.low + 1, slope.high + 1])


def test_the_interval_has_its_level_for_independent_noise():
    covers = [slope.low <= -0.5 <= slope.high for slope in (slope_of_mean(noise(k, 48, 128), k) for k in range(40))]
    assert np.mean(covers) >= 0.85, "95 % nominal; 34 of 40 is the 1 % point at 95 %"


def test_a_random_walk_of_log_ratios_has_the_slope_of_its_closed_form():
    """Var of the mean of n steps from step s is s + (n+1)(2n+1)/(6n): blocks of one walk share where it has come to."""
    n = np.array(lengths(512))
    expected = np.polyfit(np.log(n), 0.5 * np.log((512 - n) / 2 + (n + 1) * (2 * n + 1) / (6 * n)), 1)[0]
    assert -0.06 < expected < -0.02
    assert slope_of_mean(noise(3, 400, 512).cumsum(1), 0).value == pytest.approx(expected, abs=0.02)


def test_drift_shared_by_a_sequence_does_not_average_out():
    shared = np.repeat(noise(4, 48, 1), 512, 1)
    assert slope_of_mean(shared, 0).value == pytest.approx(0, abs=1e-9)
    mixed = slope_of_mean(noise(5) + 0.1 * shared, 0)
    assert -0.45 < mixed.value < -0.2
    assert mixed.low > -0.5


def test_a_mean_that_is_not_zero_is_a_floor_under_the_distance_from_ratio_one():
    """RMS^2 = 1/n + m^2, fitted."""
    n = np.array(lengths(512))
    expected = np.polyfit(np.log(n), 0.5 * np.log(1 / n + 0.1**2), 1)[0]
    table = noise(7, 400, 512) + 0.1
    assert slope_of_mean(table, 0, about_zero=True).value == pytest.approx(expected, abs=0.01)
    assert slope_of_mean(table, 0).value == pytest.approx(-0.5, abs=0.02)
    assert expected > -0.4


@given(st.floats(-3, 3), st.floats(0.01, 100))
@settings(max_examples=20, deadline=None)
def test_a_slope_knows_neither_offset_nor_scale(offset, scale):
    table = noise(6, 16, 64)
    assert slope_of_mean(scale * table + offset * scale, 0).value == pytest.approx(
        slope_of_mean(table, 0).value, abs=1e-6
    )


@pytest.mark.parametrize("constant", [0.0, -0.3])
def test_what_does_not_vary_has_no_slope(constant):
    assert slope_of_mean(np.full(SHAPE, constant), 0) is None


def test_lengths_are_halves_down_to_eight():
    assert lengths(512) == [8, 16, 32, 64, 128, 256, 512]
    assert lengths(100) == [12, 25, 50, 100]
