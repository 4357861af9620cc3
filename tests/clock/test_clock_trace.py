"""What a finished ledger says: the worked example of clock.md section 2 by hand, and sums that must close."""

from math import isnan, sqrt

import numpy as np
import pytest
from clock.cases import LENGTHS, WORKED_LAW, WORKED_LENGTHS, laws
from clock.helpers import Table, drive, rows
from hypothesis import given, settings
from hypothesis import strategies as st

from delaysim.clock import TICKS, Law
from delaysim.clock.ledger import FATES
from delaysim.clock.trace import group_rows, moments, run_alone

HAND = {
    "group": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    "attempt": [0] * 10,
    "consumed": [7, 4, 4, 10, 7, 10, None, 15, 15, None],
    "pre_queue": [1, 0, 0, 2, 0, 1, -1, 0, 0, -1],
    "in_queue": [0, 0, 0, 0, 0, 0, -1, 1, 0, -1],
}


@pytest.mark.parametrize("column", HAND)
def test_worked_example_columns_that_the_table_leaves_out(column):
    values = group_rows(drive(WORKED_LAW, WORKED_LENGTHS)[0].ledger)[column].tolist()
    assert [None if value != value else value for value in values] == HAND[column]


def test_worked_example_fates():
    fates = [FATES[index] for index in group_rows(drive(WORKED_LAW, WORKED_LENGTHS)[0].ledger)["fate"]]
    assert fates == ["trained"] * 6 + ["never", "trained", "trained", "never"]


def test_a_completion_at_the_last_publish_is_kept_as_due_only():
    ledger = drive(WORKED_LAW, WORKED_LENGTHS)[0].ledger
    assert (ledger.due[6], ledger.columns()["done"][6], ledger.publish[-1]) == (16 * TICKS, -1, 16 * TICKS)


def test_worked_example_moments_by_hand():
    """Delays of the trained groups, sorted: 0 0 0 0 1 1 1 2; no update is past 2*(eta+1) = 4."""
    found = moments(group_rows(drive(WORKED_LAW, WORKED_LENGTHS)[0].ledger), WORKED_LAW, 16.0)
    expected = {
        "sim_time": 16,
        "delay_mean": 5 / 8,
        "delay_sd": sqrt(31) / 8,
        "delay_p5": 0,
        "delay_p50": 0.5,
        "delay_p95": 1.65,
        "delay_p99": 1.93,
        "delay_max": 2,
        "delay4_mean": 19 / 8,
        "pre_queue_mean": 4 / 8,
        "in_queue_mean": 1 / 8,
        "version0_share": 4 / 8,
        "never_trained_share": 2 / 10,
        "busy": 4 / 16,
    }
    assert {name: found.pop(name) for name in expected} == pytest.approx(expected, abs=1e-12)
    assert sorted(found) == ["delay4_mean_steady", "delay_mean_steady"]
    assert all(map(isnan, found.values()))


def test_the_steady_state_begins_at_update_four_for_a_look_ahead_of_one():
    """Rows whose delay is their update: the steady means are over delays 4 and 5 alone."""
    column = np.array([0, 1, 2, 3, 4, 5, -1])
    made = {"update": column, "delay": column, "pre_queue": column, "in_queue": column, "version": column}
    found = moments(made, Law(6, 1, 1, 4.0, 1.0), 12.0)
    assert (found["delay_mean_steady"], found["delay4_mean_steady"]) == (4.5, (4**4 + 5**4) / 2)
    assert (found["delay_mean"], found["busy"]) == (2.5, 0.5)


@pytest.mark.parametrize(("n", "delay"), [(10, 3), (40, 0), (40, 12), (5, 9)])
def test_shares_of_a_fixed_delay_run(n, delay):
    """The first D+1 mini-batches come from version 0; eta*B of (eta+N)*B groups are never trained."""
    law = Law(n, 3, delay, 85.0, 1.0)
    found = moments(group_rows(drive(law, [0])[0].ledger), law, 1.0)
    assert found["version0_share"] == pytest.approx(min(n, delay + 1) / n)
    assert found["never_trained_share"] == pytest.approx(delay / (delay + n))


@settings(max_examples=200, deadline=None)
@given(laws(workers=st.none()), LENGTHS)
def test_the_ages_of_all_groups_add_up_to_the_look_ahead(law, longest):
    """Little's law as an identity: at each of N versions eta*B groups are launched and not yet in a mini-batch."""
    r = group_rows(drive(law, longest)[0].ledger)
    ages = np.where(r["update"] >= 0, r["delay"], law.n_updates - r["version"])
    assert ages.sum() == law.look_ahead * law.groups_per_update * law.n_updates


@settings(max_examples=200, deadline=None)
@given(laws(), LENGTHS)
def test_launched_is_trained_and_in_system(law, longest):
    r = group_rows(drive(law, longest)[0].ledger)
    trained, never = (r["fate"] == FATES.index(fate) for fate in ("trained", "never"))
    generating, ready = np.isnan(r["done"]), never & ~np.isnan(r["done"])
    assert trained.sum() + ready.sum() + generating.sum() == len(trained)
    assert np.array_equal(trained, ~np.isnan(r["consumed"]))
    in_system = law.look_ahead * law.groups_per_update
    assert ready.sum() + generating.sum() <= in_system
    assert law.workers is not None or ready.sum() + generating.sum() == in_system
    assert law.workers is None or generating.sum() <= law.workers


@settings(max_examples=200, deadline=None)
@given(laws(), LENGTHS)
def test_versions_are_counts_of_publishes(law, longest):
    """A launch or completion at the tick of a publish comes after it."""
    ledger = drive(law, longest)[0].ledger
    c, publish = ledger.columns(), np.array(ledger.publish)
    done = c["done"] >= 0
    assert c["version"].tolist() == [(publish <= tick).sum() for tick in c["launch"]]
    assert c["ready_version"][done].tolist() == [(publish <= tick).sum() for tick in c["done"][done]]


@settings(max_examples=200, deadline=None)
@given(laws(), LENGTHS)
def test_admission_runs_at_most_the_look_ahead_ahead(law, longest):
    version = drive(law, longest)[0].ledger.columns()["version"]
    bound = (law.look_ahead + 1 + version) * law.groups_per_update
    launched = np.arange(1, len(version) + 1)
    assert (launched <= bound).all()
    last = np.append(version[1:] != version[:-1], True)
    assert law.workers is not None or (launched[last] == bound[last]).all()


def test_a_clock_that_runs_alone_is_the_driven_clock():
    law, longest = Law(40, 4, 5, 10.0, 1.0, 1.0, 3.0, workers=11), [1, 5, 2, 9, 3, 3, 7]
    assert rows(run_alone(law, Table(longest))) == rows(drive(law, longest)[0])
