"""Speeds and seconds on numbers of GPUs."""

import pytest
from asked import SPEED
from hypothesis import given
from hypothesis import strategies as st

from delaysim.predict.costs import Rollout, Trainer, between


@pytest.mark.parametrize(
    ("count", "tokens"), [(0.5, 30), (1, 60), (8.5, 430), (16, 800), (40, 1500), (256, 3600), (999, 3600)]
)
def test_speed_is_linear_between_rows_through_the_origin_below_and_flat_beyond(count, tokens):
    assert between(SPEED, count) == pytest.approx(tokens)


@given(st.integers(1, 64), st.integers(1, 400), st.floats(0.1, 400))
def test_n_gpus_serve_n_times_the_responses_at_n_times_the_speed(gpus, slots, count):
    engine = Rollout(SPEED, slots)
    reached = min(count, slots)
    assert between(engine.of(gpus), gpus * count) == pytest.approx(gpus * between(SPEED, reached))
    assert engine.of(gpus)[-1][0] == gpus * slots


def test_peak_is_the_fastest_point_the_slots_reach():
    falling = ((1.0, 60.0), (64.0, 2200.0), (256.0, 1800.0))
    assert Rollout(falling, 256).peak(2) == 4400
    assert Rollout(SPEED, 40).peak(3) == pytest.approx(3 * 1500)


def test_one_row_of_a_trainer_scales_by_assumption():
    half = Trainer(((8.0, 60.0),), 0.5)
    assert [Trainer(((8.0, 60.0),)).at(n) for n in (4, 8, 32)] == pytest.approx([120, 60, 15])
    assert [half.at(n) for n in (2, 8, 32)] == pytest.approx([120, 60, 30])
    assert Trainer(((8.0, 60.0),), 0.0).at(64) == 60


def test_rows_of_a_trainer_are_met_and_joined_by_a_power_law():
    """Between 8 GPUs at 60 s and 32 at 20 s the exponent is log 3/log 4, so 16 take 60/sqrt(3)."""
    trainer = Trainer(((8.0, 60.0), (32.0, 20.0)), 0.5)
    assert [trainer.at(n) for n in (8, 32)] == pytest.approx([60, 20])
    assert trainer.at(16) == pytest.approx(60 / 3**0.5)
    assert [trainer.at(n) for n in (2, 128)] == pytest.approx([120, 10])
    assert [n for n in (4, 8, 16, 32) if trainer.measured(n)] == [8, 32]
