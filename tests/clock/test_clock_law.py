"""Ticks, durations, closed forms of the fixed delay, and what a pilot settles."""

from dataclasses import replace
from math import floor

import numpy as np
import pytest
from clock.helpers import drive
from clock.length_laws import HEAVY, expected_tail

from delaysim.clock import TICKS, Law, to_ticks
from delaysim.clock.law import fixed_delay_mean, fixed_delay_sim_time
from delaysim.clock.lengths import Empirical, KeyedLengths, Lognormal
from delaysim.clock.pilot import reference_length, settle
from delaysim.clock.trace import group_rows, moments, run_alone


@pytest.mark.parametrize(
    ("units", "ticks"), [(0, 0), (0.5e-6, 1), (2.5e-6, 3), (0.49e-6, 0), (85, 85_000_000), (0.1, 100_000)]
)
def test_ticks_round_half_up(units, ticks):
    assert to_ticks(units) == ticks


@pytest.mark.parametrize(
    ("lam", "longest", "units"),
    [(1, 1200, 170), (0.5, 1200, 127.5), (2, 900, 170), (1, 1, 4.25), (2, 300, 4.25), (1, 600, 85), (0, 1, 85)],
)
def test_duration_of_a_group(lam, longest, units):
    """C_gen * max(t_min, 1 + lam*(longest/L_ref - 1)) with C_gen=85, L_ref=600, t_min=0.05."""
    assert Law(1, 1, 0, 85.0, 1.0, lam, 600.0).duration(longest) == units * TICKS


def test_the_floor_of_a_duration_can_be_set():
    assert Law(1, 1, 0, 80.0, 1.0, 2.0, 600.0, t_min=0.25).duration(1) == 20 * TICKS


def fixed_delay_cases(count):
    rng = np.random.default_rng(5)
    delays, costs = [0, 1, 2, 3, 7, 32, 128, 512], [0.0, 0.5, 4.0, 85.0, 300.0, 12.345]
    for _ in range(count):
        yield (
            int(rng.integers(1, 700)),
            int(rng.choice(delays)),
            float(rng.choice(costs)),
            float(rng.choice([0.25, 1.0, 3.7])),
        )


@pytest.mark.parametrize(("n", "delay", "c_gen", "c_update"), list(fixed_delay_cases(150)))
def test_a_fixed_delay_run_is_its_closed_forms(n, delay, c_gen, c_update):
    clock, _ = drive(Law(n, 1, delay, c_gen, c_update), [0])
    rows = group_rows(clock.ledger)
    delays = rows["delay"][rows["update"] >= 0]
    assert delays.tolist() == [min(update, delay) for update in range(n)]
    assert delays.mean() == pytest.approx(fixed_delay_mean(n, delay), rel=1e-12)
    assert clock.now == round(fixed_delay_sim_time(n, delay, c_gen, c_update) * TICKS)


@pytest.mark.parametrize(("delay", "mean"), [(32, 31.34), (64, 61.4), (128, 117.68), (256, 214.88), (512, 347.84)])
def test_run_means_over_800_updates(delay, mean):
    assert fixed_delay_mean(800, delay) == pytest.approx(mean, abs=0.005)


@pytest.mark.parametrize(("delay", "per_update"), [(32, 2.90), (128, 1.35)])
def test_the_clock_itself_takes_these_units_per_update_over_240(delay, per_update):
    clock, _ = drive(Law(240, 8, delay, 85.0, 1.0), [0])
    assert clock.now / TICKS / 240 == pytest.approx(per_update, abs=0.005)


def test_beyond_the_cost_of_generation_delay_buys_no_time():
    ends = [fixed_delay_sim_time(400, delay, 85.0, 1.0) for delay in (42, 84, 85, 86, 128)]
    assert ends[0] > ends[1] > ends[2] == ends[3] == ends[4] == 485


def window_mean(law, eta, groups_per_update, seed):
    """Steady mean delay over 30 look-aheads, L_ref the mean length."""
    lengths = KeyedLengths(law, 8, seed)
    setting = Law(30 * (eta + 1), groups_per_update, eta, 85.0, 1.0, 1.0, float(lengths.table(4096).mean()))
    clock = run_alone(setting, lengths)
    return moments(group_rows(clock.ledger), setting, clock.now / TICKS)["delay_mean_steady"]


LAWS = {
    "heavy": HEAVY,
    "light": Lognormal(100, 0.3, 0.0, 400),
    "two-valued": Empirical(np.array([1, 1, 1, 500])),
}


@pytest.mark.parametrize("eta", [0, 64, 157])
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_the_look_ahead_is_the_steady_mean_delay(law, eta):
    assert window_mean(law, eta, 8, seed=11) == pytest.approx(eta, rel=0.005)


def test_ten_look_aheads_of_the_default_law_come_within_half_a_percent():
    """Over 16 seeds the error has a standard deviation of 0.12 %; the exact sum stands in test_clock_trace."""
    lengths = KeyedLengths(HEAVY, 8, seed=0)
    law = Law(1580, 8, 157, 85.0, 1.0, 1.0, 600.0)
    clock = run_alone(law, lengths)
    assert moments(group_rows(clock.ledger), law, 1.0)["delay_mean_steady"] == pytest.approx(157, rel=0.005)


def test_the_pilot_settles_the_look_ahead_of_the_default_law():
    """Mean duration is C_gen times the tail multiplier; the ratio's standard error is by the delta method."""
    table = KeyedLengths(HEAVY, 8, seed=0).table(20_000)
    expected = 85 * expected_tail(HEAVY, 8)
    residual = table.max(1) - table.mean(1) * table.max(1).mean() / table.mean()
    error = 85 * residual.std() / table.mean() / np.sqrt(len(table))
    assert floor(expected + 0.5) == 157
    assert error < 0.3
    settled = settle(Law(1, 8, 0, 85.0, 1.0, 1.0), table, None, None)
    assert abs(settled.look_ahead - expected) < 4 * error + 0.5
    assert settled.l_ref == reference_length(table) == table.mean()


@pytest.mark.parametrize(("longest", "eta"), [(3, 2), (5, 3), (4, 2), (2, 1), (7, 4)])
def test_the_look_ahead_is_rounded_half_up(longest, eta):
    """Durations of longest/2 updates: 1.5 -> 2, 2.5 -> 3, 2 -> 2, 1 -> 1, 3.5 -> 4."""
    law = Law(1, 1, 0, 1.0, 1.0, 1.0, 2.0)
    assert settle(law, [[1, longest], [longest, 1]], 2.0, None).look_ahead == eta


def test_the_look_ahead_counts_updates_not_units():
    law = Law(1, 1, 0, 12.0, 4.0, 1.0, 2.0)
    assert settle(law, [[2, 2]], 2.0, None).look_ahead == 3
    assert settle(replace(law, c_update=1.0), [[2, 4]], 2.0, None).look_ahead == 24
