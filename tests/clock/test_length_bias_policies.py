"""What each drop policy does to lengths: clock.md 2.9, simulated there by other code, and a closed form."""

import numpy as np
import pytest
from clock.length_laws import HEAVY

from delaysim.clock import Law
from delaysim.clock.bias import bias
from delaysim.clock.lengths import KeyedLengths
from delaysim.clock.trace import group_rows, run_alone

POOL = {"groups_per_update": 8, "look_ahead": 157, "c_gen": 85.0, "c_update": 1.0, "lam": 1.0, "l_ref": 600.0}
pytestmark = pytest.mark.slow


def biased(n_updates=1500, **policy):
    law = Law(n_updates, **POOL | policy)
    lengths = KeyedLengths(HEAVY, 8, 0)
    ledger = run_alone(law, lengths).ledger
    return bias(group_rows(ledger), lengths.of_ledger(ledger, len(ledger)), law.look_ahead)


@pytest.mark.parametrize(
    ("policy", "ratio"),
    [({}, 0.997), ({"queue_drop": 2.0}, 0.997), ({"age_max": 320}, 0.92), ({"age_max": 256}, 0.87),
     ({"age_max": 160}, 0.78), ({"age_max": 128}, 0.73), ({"timeout": 4 * 85.0}, 0.92), ({"timeout": 2 * 85.0}, 0.71),
     ({"queue_drop": 2.0, "look_ahead": 204}, 1.002), ({"age_max": 160, "look_ahead": 204}, 0.73),
     ({"age_max": 128, "look_ahead": 204}, 0.68)],
)  # fmt: skip
def test_trained_over_population_mean(policy, ratio):
    """With 30 % more in flight (look-ahead 204) an age limit drops more, and a short queue many but no lengths."""
    assert biased(**policy).steady.ratio == pytest.approx(ratio, abs=0.015)


@pytest.mark.parametrize("multiple", [2, 3, 4])
def test_a_timeout_trains_exactly_the_groups_below_a_length(multiple):
    """The longest response decides: 85 * L / 600 <= multiple * 85, so the trained are the law's groups up to that."""
    drawn = HEAVY.draw(np.random.default_rng(1), 200_000, 8)
    kept = drawn[drawn.max(axis=1) <= multiple * 600]
    found = biased(timeout=85.0 * multiple).steady
    assert found.ratio == pytest.approx(kept.mean() / drawn.mean(), abs=4 * found.chance + 0.002)
    assert found.shares["timeout"] == pytest.approx(1 - len(kept) / len(drawn), abs=0.015)
    assert found.ks == pytest.approx(_distance(kept, drawn), abs=0.01)


def _distance(kept, drawn):
    grid = np.arange(1, HEAVY.cap + 1)
    below = [np.searchsorted(np.sort(table.ravel()), grid, side="right") / table.size for table in (kept, drawn)]
    return np.abs(below[0] - below[1]).max()


def test_a_short_run_is_biased_by_its_end_alone():
    """clock.md 1: a run of 800 updates trains 0.943 of the mean, and what it never consumes is 1.29 times longer."""
    found = biased(800)
    assert found.run.ratio == pytest.approx(0.943, abs=0.01)
    assert found.run.means["never"] / found.run.generated == pytest.approx(1.29, abs=0.03)
    assert found.steady.ratio == pytest.approx(1, abs=0.003)


def test_dropped_prompts_that_go_again_come_back_longer():
    """What is generated then holds long prompts several times: less is lost against the prompts' first groups."""
    found, without = biased(age_max=160, requeue=True), biased(age_max=160)
    assert found.fresh_ratio == pytest.approx(0.93, abs=0.02)
    assert found.policy.ratio < 0.77
    assert without.fresh_ratio == pytest.approx(without.policy.ratio)
