"""Numbers read off curves, against geometry."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delaysim.analysis.stats import auc, delay_at, gain_kept, retention, updates_to, value_at

CURVES = st.lists(st.floats(0.01, 1), min_size=4, max_size=4).map(np.array)
X = np.array([0.0, 1, 4, 10])


@settings(max_examples=40)
@given(CURVES, st.floats(0.1, 50), st.floats(-5, 5))
def test_area_is_a_mean_height(y, stretch, shift):
    """Of a constant the constant; between least and most; the same on another scale of x; linear in y."""
    area = auc(y, X)
    assert auc(np.full(4, 0.3), X) == pytest.approx(0.3)
    assert y.min() - 1e-12 <= area <= y.max() + 1e-12
    assert auc(y, stretch * X + shift) == pytest.approx(area)
    assert auc(2 * y + 1, X) == pytest.approx(2 * area + 1)


def test_area_by_hand_and_of_many_curves():
    assert auc([0, 1, 1, 0], X) == pytest.approx((0.5 + 3 + 3) / 10)
    assert auc(np.ones((2, 3, 4)), X).shape == (2, 3)


def test_first_update_at_a_level_by_hand():
    """0, .4, .2, .8 at 0, 1, 4, 10: .3 is first reached at .75, .5 at 7, .8 at 10, .9 never."""
    y = [0.0, 0.4, 0.2, 0.8]
    found = [float(updates_to(y, X, level)) for level in (-1, 0, 0.3, 0.5, 0.8, 0.9)]
    assert found == pytest.approx([0, 0, 0.75, 7, 10, np.inf])
    assert updates_to([y, y[::-1]], X, 0.5) == pytest.approx([7, 0])


@settings(max_examples=60)
@given(CURVES, st.floats(0.05, 0.95))
def test_the_curve_has_the_level_where_it_is_first_reached(y, level):
    at = float(updates_to(y, X, level))
    assert np.isinf(at) == (y.max() < level)
    if np.isfinite(at):
        assert value_at(y, X, at) == pytest.approx(max(level, y[0]) if at == 0 else level)
        earlier = np.linspace(0, at, 50)[:-1]
        assert (np.interp(earlier, X, y) < level + 1e-9).all() or at == 0


@settings(max_examples=60)
@given(CURVES, st.floats(0.1, 1.0))
def test_delays_up_to_which_a_share_is_left(y, share):
    at = float(delay_at(y, X, share))
    assert np.isinf(at) == (y.min() >= share * y[0])
    if np.isfinite(at):
        assert value_at(y, X, at) == pytest.approx(share * y[0])
        assert (np.interp(np.linspace(0, at, 50), X, y) >= share * y[0] - 1e-9).all()
    assert delay_at(3 * y, X, share) == pytest.approx(at)


def test_a_curve_that_recovers_has_lost_at_the_first_fall():
    assert delay_at([1.0, 0.5, 1.0, 1.0], X, 0.75) == 0.5


def test_a_curve_that_touches_the_line_has_not_fallen():
    assert delay_at([1.0, 0.75, 0.8, 0.9], X, 0.75) == np.inf
    assert delay_at([1.0, 1.0, 0.5, 0.5], X, 1.0) == 1


def test_a_curve_at_one_place_is_interpolation():
    y = np.array([[0.0, 0.4, 0.2, 0.8], [1, 1, 1, 0]])
    for where in (0, 0.5, 1, 3, 10):
        assert value_at(y, X, where) == pytest.approx([np.interp(where, X, row) for row in y])
    assert np.isnan(value_at(y, X, 10.1)).all()
    assert np.isnan(value_at(y, X, -0.1)).all()


def test_retention_and_gain_kept():
    y = np.array([[0.6, 0.45, 0.3], [0.5, 0.5, 0.1]])
    assert retention(y) == pytest.approx(np.array([[1, 0.75, 0.5], [1, 1, 0.2]]))
    assert gain_kept(y, 0.2) == pytest.approx(np.array([[1, 0.625, 0.25], [1, 1, -1 / 3]]))
    assert gain_kept(y, 0) == pytest.approx(retention(y))


@pytest.mark.parametrize("x", [[0.0], [0, 1, 1, 2], [0, 2, 1, 3], [[0, 1]]])
def test_an_axis_that_does_not_grow_is_refused(x):
    for function in (lambda: auc(np.ones(len(x)), x), lambda: updates_to(np.ones(len(x)), x, 0.5)):
        with pytest.raises(ValueError, match="each above the one before"):
            function()


@pytest.mark.parametrize("share", [0.0, 1.2, -0.5])
def test_shares_that_cannot_be_are_refused(share):
    with pytest.raises(ValueError, match="retention"):
        delay_at([1.0, 0.5], [0, 1], share)
