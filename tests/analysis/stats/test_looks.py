"""Levels of sequential looks, by simulation, against the statistical study's sec. 6.4."""

import numpy as np
import pytest

from delaysim.analysis.stats import Looks, look_level, operate, spend

AT = (3, 5, 8)
DRAWS = 100_000
CLOSE = 0.003
"""Four standard errors of 5 % in so many draws."""


@pytest.fixture
def rng():
    return np.random.default_rng(17)


@pytest.mark.parametrize(
    ("levels", "overall"),
    [((0.02,) * 3, 0.050), ((0.001, 0.010, 0.045), 0.052), ((0.005, 0.015, 0.040), 0.053), ((0.05,) * 3, 0.116)],
)
def test_what_three_looks_spend(levels, overall, rng):
    """Plain .05 at each of three looks is 11.6 %."""
    assert operate(Looks(AT, levels), 0.0, rng, DRAWS).rejects == pytest.approx(overall, abs=CLOSE + 0.001)


def test_one_look_spends_its_level(rng):
    found = operate(Looks((5,), (0.05,)), 0.0, rng, DRAWS)
    assert found.rejects == pytest.approx(0.05, abs=CLOSE)
    assert found.seeds == 5


@pytest.mark.parametrize(("effect", "power", "seeds"), [(1, 0.65, 7.4), (2, 0.996, 5.9), (3, 1.0, 4.9)])
def test_power_and_seeds_used(effect, power, seeds, rng):
    found = operate(Looks(AT, (0.005, 0.015, 0.040)), effect, rng, 40_000)
    assert found.rejects == pytest.approx(power, abs=0.01)
    assert found.seeds == pytest.approx(seeds, abs=0.06)


def test_spending_finds_the_default_schedule(rng):
    found = spend(AT, 0.05, rng, draws=DRAWS)
    assert found.seeds == Looks().seeds
    assert found.levels == pytest.approx(Looks().levels, abs=0.001)
    assert operate(found, 0.0, np.random.default_rng(5), DRAWS).rejects == pytest.approx(0.05, abs=CLOSE)


def test_spending_in_shares_keeps_them(rng):
    found = spend(AT, 0.05, rng, shares=(1, 10, 45), draws=DRAWS)
    assert found.levels[2] / found.levels[0] == pytest.approx(45)
    assert found.levels == pytest.approx((0.001, 0.0096, 0.0434), abs=0.001)


def test_one_look_has_all_of_alpha_and_simulation_is_repeatable():
    first, again = (spend((4,), 0.05, np.random.default_rng(1)).levels for _ in range(2))
    assert first == again
    assert first[0] == pytest.approx(0.05, abs=0.002)


def test_the_level_of_a_look():
    looks = Looks(AT, (0.001, 0.010, 0.045))
    assert [look_level(seeds, looks) for seeds in AT] == [0.001, 0.010, 0.045]
    with pytest.raises(ValueError, match="4 seeds is no look; the schedule looks at 3, 5, 8"):
        look_level(4, looks)


@pytest.mark.parametrize(
    ("seeds", "levels"),
    [((3, 5), (0.02,)), ((5, 3), (0.02, 0.02)), ((1, 3), (0.02, 0.02)), ((), ()), ((3,), (0.0,)), ((3,), (2.0,))],
)
def test_schedules_that_cannot_be_are_refused(seeds, levels):
    with pytest.raises(ValueError, match=r"looks at|levels"):
        Looks(seeds, levels)
