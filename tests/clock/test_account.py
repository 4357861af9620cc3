"""Who holds generation, what the learner does: by hand, in closed form, and instant by instant from the definitions."""

from itertools import pairwise

import numpy as np
import pytest
from clock.cases import WORKED_LAW, WORKED_LENGTHS
from clock.helpers import drive
from clock.policy_runs import runs
from hypothesis import given, settings

from delaysim.clock import TICKS, Law
from delaysim.clock.account import HOLDS, account, optimiser_steps
from delaysim.clock.law import fixed_delay_sim_time
from delaysim.clock.trace import group_rows


def finished(law, lengths):
    clock, _ = drive(law, lengths)
    return clock.ledger, group_rows(clock.ledger)


def of(law, lengths=(1,)):
    ledger, rows = finished(law, list(lengths))
    return account(rows, law, ledger.poll, ledger.publish)


@pytest.mark.parametrize("delay", [0, 1, 10, 84])
def test_a_fixed_delay_below_c_gen_is_held_by_look_ahead_all_the_time(delay):
    """D + 1 updates for every C_gen + C_update: a round is launched with the first publish of the one before."""
    found, total = of(Law(200, 8, delay, 85.0, 1.0)), fixed_delay_sim_time(200, delay, 85.0, 1.0)
    assert found.end == total * TICKS
    assert found.held["look-ahead"] == found.end
    assert found.learner == {"updating": 200 * TICKS, "syncing": 0, "waiting": (total - 200) * TICKS}


def test_beyond_c_gen_the_learner_waits_for_the_first_groups_only():
    assert of(Law(200, 8, 100, 85.0, 1.0)).learner == {"updating": 200 * TICKS, "syncing": 0, "waiting": 85 * TICKS}


def test_one_worker_by_hand():
    """B = 1, C_gen = 3, C_update = 1, one worker, eta = 1: the worker is busy at every instant.

    Launches at 0, 3 and, since the publish at 4 finds one group launched ahead, at 6, 9: room for two more than were
    trained, so the second group (3 to 6) fills it from 3 to the publish at 4, the third from 6 to 7, the fourth from 9.
    """
    found = of(Law(3, 1, 1, 3.0, 1.0, workers=1))
    assert found.end == 10 * TICKS
    assert found.held == units({"look-ahead and workers": 3, "workers": 7})
    assert found.learner == {"updating": 3 * TICKS, "syncing": 0, "waiting": 7 * TICKS}
    assert found.filled == {"generating": 1.0, "scoring": 0.0, "ready": 0.0}


def test_the_worked_example_by_hand():
    """Generating 6+2+4+10+2+4+8+2+4+4 of 16 units; groups 0, 1, 5, 7 and 9 wait for 1, 2, 1, 5 and 1."""
    found = of(WORKED_LAW, WORKED_LENGTHS)
    assert found.held == units({"look-ahead": 16})
    assert found.learner == {"updating": 4 * TICKS, "syncing": 0, "waiting": 12 * TICKS}
    assert found.filled == pytest.approx({"generating": 46 / 16, "scoring": 0.0, "ready": 10 / 16})


def units(held):
    return {name: held.get(name, 0) * TICKS for name in HOLDS}


LATE = {"submit": [0, 0, 2, 9], "launch": [0, 4, 6, 9], "done": [4, 6, 9, None], "dropped": [None, 8, None, None]}
"""Two groups at once would be too many for one worker; between 9 and 10 it has the fourth."""


def test_arrivals_hold_only_while_nothing_waits_for_a_worker():
    rows = {name: np.array([np.nan if t is None else t for t in column], float) for name, column in LATE.items()}
    rows |= {
        "ready": rows["done"],
        "consumed": np.array([5, np.nan, np.nan, np.nan]),
        "update": np.array([0, -1, -1, -1]),
    }
    law = Law(1, 1, 9, 4.0, 1.0, workers=1, arrivals=0.4)
    found = account(rows, law, [5 * TICKS], [10 * TICKS])
    assert found.held == units({"workers": 6, "arrivals": 4})
    assert found.filled == pytest.approx({"generating": 1.0, "scoring": 0.0, "ready": (1 + 2 + 1) / 10})


@given(runs())
@settings(max_examples=40, deadline=None)
def test_shares_add_up_and_agree_with_every_instant(run):
    found = account(run.rows, run.law, run.ledger.poll, run.ledger.publish)
    assert sum(found.held.values()) == sum(found.learner.values()) == found.end
    assert all(ticks >= 0 for ticks in (*found.held.values(), *found.learner.values()))
    assert found.held == by_instants(run)
    system = sum(left - launch for launch, left in zip(run.ledger.launch, exits(run), strict=True))
    assert sum(found.filled.values()) == pytest.approx(system / found.end)


def exits(run):
    """When each group leaves generation and queue, at the latest at the end."""
    polls, dropped = run.ledger.poll, run.ledger.dropped
    return [polls[update] if update >= 0 else dropped.get(group, (0, run.end))[1]
            for group, update in enumerate(run.ledger.update)]  # fmt: skip


def by_instants(run):
    """The limits as the rules of admission state them, evaluated between any two events."""
    law, ledger, held = run.law, run.ledger, dict.fromkeys(HOLDS, 0)
    columns = ledger.columns()
    drops = [tick for _, tick in ledger.dropped.values()]
    back = [ledger.publish[update] for update in ledger.update if update >= 0]
    freed = [
        min(t for t in (done, drop, run.end) if t >= 0)
        for done, drop in zip(columns["done"], columns["dropped"], strict=True)
    ]
    times = sorted({0, *columns["submit"], *ledger.launch, *ledger.publish, *drops, *freed})
    for start, stop in pairwise(times):
        launched = sum(launch <= start for launch in ledger.launch)
        away = launched - sum(t <= start for t in drops + back)
        full = law.look_ahead is not None and away >= (law.look_ahead + 1) * law.fresh
        working = sum(a <= start < b for a, b in zip(ledger.launch, freed, strict=True))
        busy = law.workers is not None and working == law.workers
        idle = law.arrivals is not None and sum(t <= start for t in columns["submit"]) == launched
        name = {(1, 1): "look-ahead and workers", (1, 0): "look-ahead", (0, 1): "workers"}.get((full, busy))
        other = "slots" if law.slots is not None else "start" if law.start == "ramp" else "nothing"
        held["arrivals" if idle else name or other] += stop - start
    return held


@given(runs())
@settings(max_examples=40, deadline=None)
def test_without_arrivals_and_a_ramp_something_holds_at_every_instant(run):
    found = account(run.rows, run.law, run.ledger.poll, run.ledger.publish)
    if run.law.arrivals is None and run.law.start != "ramp":
        assert found.held["nothing"] == 0


def test_delay_in_optimiser_steps_by_hand():
    """Delays 0, 2 and 4 with three steps on each mini-batch: 0 1 2, 6 7 8, 12 13 14."""
    assert optimiser_steps([0, 2, 4], 3) == (7.0, 14)
    assert optimiser_steps([0, 2, 4], 1) == (2.0, 4)
