"""The front, and accuracy by the hour: both from made-up numbers whose answers are known."""

import pytest
from asked import finished
from hypothesis import given
from hypothesis import strategies as st

from delaysim.errors import UserError
from delaysim.pareto import front
from delaysim.predict.join import Curve, curves, default_hours, lines, looked_up
from delaysim.predict.operation import SYNCHRONOUS, Cell
from delaysim.predict.simulate import Prediction, Shares

POINTS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30)


@given(POINTS)
def test_nothing_beats_the_front_and_the_front_beats_the_rest(points):
    marked = front(points)
    best = [point for point, on in zip(points, marked, strict=True) if on]
    better = lambda a, b: a[0] >= b[0] and a[1] <= b[1] and a != b  # noqa: E731
    assert best
    assert not any(better(point, one) for one in best for point in points)
    assert all(on or any(better(one, point) for one in best) for point, on in zip(points, marked, strict=True))


def predicted(seconds, delay):
    shares = Shares(1.0, 0.0, 0.0)
    return Prediction(Cell(SYNCHRONOUS, 1, 1), seconds, 0.0, 64, 100.0, shares, shares, 1.0, delay, delay, delay)


@pytest.fixture
def runs():
    """Runs of 60 updates rise in straight lines: at D=0 to .8 and 1, at D=8 to .6 and .6, from .2."""
    finals = {0: (0.8, 1.0), 8: (0.6, 0.6)}
    return [finished(final, seed, D=delay) for delay in finals for seed, final in enumerate(finals[delay])]


def test_accuracy_is_read_after_the_updates_made_by_then(runs):
    """60 s an update: 30 updates in half an hour, halfway from .2 to .9; 120 s: a quarter of the way from .2 to .6."""
    fresh, stale = lines([predicted(60, 0.0), predicted(120, 8.0)], curves(runs), [0.5, 1.5])
    assert (fresh.stands_for, stale.stands_for) == (0, 8)
    assert fresh.at[0.5].mean == pytest.approx(0.2 + 0.5 * 0.7)
    assert fresh.at[0.5].half_width == pytest.approx(12.706 * 0.1 * 0.5, rel=1e-3), "t with one degree of freedom"
    assert stale.at[0.5].mean == pytest.approx(0.2 + 0.25 * 0.4)
    assert fresh.at[1.5] is None, "90 updates lie beyond the runs' 60"
    assert stale.at[1.5].mean == pytest.approx(0.2 + 0.75 * 0.4)
    assert default_hours([predicted(60, 0.0), predicted(120, 8.0)], curves(runs)) == [0.25, 0.5, 1.0]


@pytest.mark.parametrize(
    ("delay", "expected"),
    [(0, 0), (1, 0), (1.4, 0), (1.6, 8), (5.4, 8), (7, 8), (12, 8), (12.1, 64), (90, 64), (99, None)],
)
def test_near_runs_or_staler_ones_stand_for_a_delay(delay, expected):
    known = [Curve("gmc", d, ()) for d in (0.0, 8.0, 64.0)]
    found = looked_up(known, delay)
    assert (None if found is None else found.delay) == expected


def test_a_staler_stand_in_is_said(runs):
    (line,) = lines([predicted(60, 3.0)], curves(runs), [0.5])
    assert (line.stands_for, line.staler) == (8, True)
    (line,) = lines([predicted(60, 6.0)], curves(runs), [0.5])
    assert (line.stands_for, line.staler) == (8, False)
    (line,) = lines([predicted(60, 30.0)], curves(runs), [0.5])
    assert (line.stands_for, line.staler, line.at[0.5]) == (None, False, None)


def test_each_estimator_has_its_own_lines_and_nothing_else_may_vary(runs):
    other = [finished(0.5, seed, estimator="grpo") for seed in (0, 1)]
    found = lines([predicted(60, 0.0)], curves([*runs, *other]), [0.5])
    assert [(line.estimator, line.at[0.5].mean) for line in found] == [("gmc", pytest.approx(0.55)), ("grpo", 0.35)]
    with pytest.raises(UserError, match=r"lr varies in the runs too \(0.0003, 0.001\): choose with --where lr=VALUE"):
        curves([*runs, finished(0.9, lr=1e-3)])


def test_delays_that_came_out_count_where_none_was_fixed():
    came = {"delay_mean": 70.0, "delay_mean_steady": 85.25}
    coupled = {"suite": "simulated_async", "D": None}
    assert [c.delay for c in curves([finished(0.9, moments=came, **coupled)])] == [85.25]
    assert [c.delay for c in curves([finished(0.9, moments={"delay_mean": 70.0}, **coupled)])] == [70]
    assert [c.delay for c in curves([finished(0.9, suite="no_delay", D=None)])] == [0]
