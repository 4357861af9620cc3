"""The closed forms against published values and against sums of their own."""

from math import erf, exp

import numpy as np
import pytest
from scipy.signal import lfilter

from delaysim.validation import formulas as f
from delaysim.validation.intervals import BATCHES, batch_means
from delaysim.validation.queues import number_over_flow


def test_one_exponential_server():
    """rho / (1 - rho), in service times."""
    for load in (0.2, 0.5, 0.8):
        assert f.mmc_wait(load, 1) == pytest.approx(load / (1 - load))
        assert f.mmc_wait(load / 3, 1, 3.0) == pytest.approx(3 * load / (1 - load))


@pytest.mark.parametrize(("servers", "rate", "wait"), [(4, 3.2, 0.746), (16, 14.0, 0.254)])
def test_erlang_c(servers, rate, wait):
    assert f.mmc_wait(rate, servers) == pytest.approx(wait, abs=5e-4)


def test_two_servers_by_the_balance_of_their_states():
    """M/M/2: p0 = (1-r)/(1+r), Lq = 2 r^3 / (1 - r^2), r the load of each; Little gives the wait."""
    r = 0.7
    assert f.mmc_wait(2 * r, 2) == pytest.approx(2 * r**3 / (1 - r**2) / (2 * r))


def test_one_server_of_any_kind():
    assert f.mg1_wait(0.8, 1.0, 2.0) == pytest.approx(f.mmc_wait(0.8, 1))  # exponential: E[S^2] = 2
    assert f.mg1_wait(0.8, 1.0, 1.0) == pytest.approx(f.mdc_wait(0.8, 1))  # constant
    assert f.mg1_wait(0.8, 1.0, f.lognormal_second_moment(0.7)) == pytest.approx(3.265, abs=5e-4)


@pytest.mark.parametrize(("servers", "rate", "cosmetatos"), [(4, 3.2, 0.385), (16, 14.0, 0.135)])
def test_constant_service_near_the_approximation_of_cosmetatos(servers, rate, cosmetatos):
    assert f.mdc_wait(rate, servers) == pytest.approx(cosmetatos, rel=0.01)


@pytest.mark.parametrize(("machines", "throughput"), [(4, 0.3533), (10, 0.7854), (16, 0.9777)])
def test_machine_repairman(machines, throughput):
    assert f.repairman_throughput(machines, 10.0, 1.0) == pytest.approx(throughput, abs=5e-5)


def test_one_machine_runs_and_is_repaired_in_turn():
    assert f.repairman_throughput(1, 10.0, 2.5) == pytest.approx(1 / 12.5)


def test_tail_multiplier():
    """Of one 1; of two 1 + erf(sigma/2), the mean of the larger of two lognormals; of eight with sigma 0.5 1.89."""
    assert f.tail(1, 0.7) == pytest.approx(1)
    assert f.tail(2, 0.7) == pytest.approx(1 + erf(0.35))
    assert f.tail(8, 0.5) == pytest.approx(1.89, abs=0.005)
    assert f.tail(8, f.sigma_of_tail(8, 2.1)) == pytest.approx(2.1)


@pytest.mark.parametrize(
    ("row", "value"),
    [
        ((120, 240, 2, 0.63, 1.40), 1.330),
        ((240, 120, 2, 0.92, 1.40), 3.720),
        ((128, 128, 2, 1.07, 1.40), 3.210),
        ((128, 128, 1, 1.14, 1.40), 2.167),
        ((512, 64, 4, 1.30, 1.89), 14.82),
        ((2048, 64, 2, 1.50, 2.10), 46.30),
        ((480, 64, 2, 0.50, 2.10), 16.25),
        ((1024, 256, 1, 0.95, 2.58), 11.27),
    ],
)
def test_staleness_of_the_worked_rows(row, value):
    assert f.staleness(*row) == pytest.approx(value, abs=0.005)


def test_second_moment_of_a_lognormal_of_mean_one():
    """exp(2 mu + 2 sigma^2) with mu = -sigma^2 / 2."""
    assert f.lognormal_second_moment(0.7) == pytest.approx(exp(2 * -(0.7**2) / 2 + 2 * 0.7**2))


def test_batch_means_of_independent_values_are_as_wide_as_their_spread():
    rng = np.random.default_rng(0)
    errors = [batch_means(rng.normal(3.0, 2.0, 3000), 0.0).error for _ in range(200)]
    assert np.mean(errors) == pytest.approx(2 / 3000**0.5, rel=0.03)


def test_an_interval_holds_the_mean_of_a_correlated_series_as_often_as_it_says():
    """An autoregressive series with correlation 0.9: its plain standard error would be four times too small."""
    rng = np.random.default_rng(1)
    runs = [batch_means(lfilter([1], [1, -0.9], rng.standard_normal(6600)), 0.1) for _ in range(300)]
    held = [abs(measured.value) <= measured.half_width(0.9) for measured in runs]
    assert np.mean(held) == pytest.approx(0.9, abs=0.05)


def test_the_warm_up_is_left_out():
    assert batch_means([100.0] * 10 + [1.0] * 90, 0.1) == (1.0, 0.0)
    with pytest.raises(ValueError, match=f"20 values are too few for {BATCHES} batches"):
        batch_means(np.zeros(20), 0.0)


def test_number_and_flow_by_hand():
    """Everyone comes at 0, 1, 2, ... and stays 2.5: 2.5 are there on average."""
    start = np.arange(200.0)
    assert number_over_flow(start, start + 2.5) == pytest.approx(1.0, abs=0.01)
    assert number_over_flow(start, start + 5.0) == pytest.approx(1.0, abs=0.02)


def test_number_and_flow_differ_where_some_never_leave():
    """Of those who come at odd times nobody leaves: at t, t/2 are there besides."""
    start = np.arange(200.0)
    assert number_over_flow(start, np.where(start % 2, np.nan, start + 2.5)) > 10
