"""How much delay is affordable: the bound, the order of the delays, the choice of a learning rate, the time."""

import math

import numpy as np
import pytest
from fabricated import made, score

from delaysim.analysis.budget import budgets
from delaysim.analysis.grid import arrange
from delaysim.analysis.stats import crossed
from delaysim.errors import UserError


def grid(losses, seeds=4, noise=0.0, **settings):
    """Runs that lose so much at each delay, each seed with a shift of its own that pairing removes."""
    shift = np.random.default_rng(1).normal(0, 0.05, (seeds, 1))
    extra = np.random.default_rng(2).normal(0, noise, (len(losses), seeds, 30))
    return [
        made(0.7 + shift[s] - 1.5 * loss + extra[i, s], s, D=d, **settings)
        for i, (d, loss) in enumerate(losses.items())
        for s in range(seeds)
    ]


def of(outcomes, at=("D",), choose=None, tolerance=0.02):
    return budgets(arrange(outcomes, "estimator", list(at)), "D", choose, tolerance, 0.95)


def test_the_largest_delay_is_the_last_before_the_first_that_fails():
    """D=64 loses nothing, and does not count: D=32 failed."""
    (budget,) = of(grid({0: 0, 16: 0.01, 32: 0.03, 64: 0.0}))
    assert [step.affordable for step in budget.steps] == [True, True, False, False]
    assert budget.largest == 16


def test_the_bound_decides_and_not_the_mean():
    outcomes = grid({0: 0, 16: 0.015}, noise=0.05)
    (budget,) = of(outcomes)
    late, early = ([run for run in outcomes if run.settings["D"] == d] for d in (16, 0))
    loss = crossed(np.stack([run.scores for run in late]) - np.stack([run.scores for run in early]))
    step = budget.steps[1]
    assert math.isclose(step.loss.low, loss.low)
    assert loss.mean > -0.02
    assert loss.low < -0.02
    assert not step.affordable
    assert budget.largest == 0
    assert of(outcomes, tolerance=0.05)[0].largest == 16


def test_seeds_are_paired_with_their_own_run_without_delay():
    """The seeds' shifts are ten times the tolerance; paired they are gone."""
    (budget,) = of(grid({0: 0, 16: 0.0}))
    assert abs(budget.steps[1].loss.low) < 1e-12
    assert budget.largest == 16


def test_one_seed_affords_nothing_known():
    (budget,) = of(grid({0: 0, 16: 0.0}, seeds=1))
    assert not budget.known
    assert budget.largest is None
    assert not any(step.affordable for step in budget.steps)


def test_without_a_run_without_delay_there_is_no_budget():
    with pytest.raises(UserError, match=r"gmc has no run at D=0 .*add D=0"):
        of(grid({16: 0, 32: 0.0}))


def test_a_rate_is_judged_on_the_seed_that_did_not_choose_it():
    """Seed 0 alone likes the small rate, so the others choose the large one for it; they choose as it would not."""
    finals = {1e-4: [0.9, 0.2, 0.2], 1e-3: [0.1, 0.8, 0.8]}
    outcomes = [
        made(np.full(5, f), s, D=d, lr=lr) for lr, by in finals.items() for s, f in enumerate(by) for d in (0, 8)
    ]
    (budget,) = of(outcomes, at=("D", "lr"), choose="lr")
    assert budget.steps[1].chosen == {0: 1e-3, 1: 1e-4, 2: 1e-4}
    assert math.isclose(budget.steps[1].accuracy, float(np.mean(score([0.1, 0.2, 0.2]))))


def test_choosing_takes_two_seeds():
    outcomes = [made(np.full(5, 0.5), 0, D=d, lr=lr) for d in (0, 8) for lr in (1e-4, 1e-3)]
    with pytest.raises(UserError, match="takes two seeds or more"):
        of(outcomes, at=("D", "lr"), choose="lr")


def test_what_else_is_held_has_budgets_of_its_own():
    outcomes = [*grid({0: 0, 16: 0.0}, G=4), *grid({0: 0, 16: 0.1}, G=8)]
    assert [(b.at, b.largest) for b in of(outcomes, at=("D", "G"))] == [({"G": 4}, 16), ({"G": 8}, 0)]


def test_time_is_per_update_and_only_of_one_clock():
    outcomes = [*grid({0: 0}, time=86.0), *grid({16: 0.0}, time=5.375)]
    (budget,) = of(outcomes)
    assert [step.time for step in budget.steps] == [86.0, 5.375]
    assert budget.steps[1].time_ratio == 5.375 / 86.0
    (budget,) = of([*grid({0: 0}, time=86.0, C_gen=85.0), *grid({16: 0.0}, time=5.375, C_gen=20.0)], at=("D",))
    assert budget.steps[1].time_ratio is None


def test_collapsed_runs_are_counted_and_lower_the_mean():
    outcomes = [*grid({0: 0}), *grid({16: 0.0})[:-1], made(np.full(30, 0.0), 3, D=16, collapsed=True)]
    (budget,) = of(outcomes)
    assert budget.steps[1].collapsed == 1
    assert budget.steps[1].accuracy < budget.steps[0].accuracy - 0.1
    assert budget.largest == 0
