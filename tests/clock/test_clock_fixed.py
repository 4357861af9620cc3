"""Fixed delays, the worked example, and the closed forms."""

import numpy as np
import pytest
from clock.helpers import drive

from delaysim.clock import TICKS, Law
from delaysim.clock.law import fixed_delay_mean, fixed_delay_sim_time
from delaysim.clock.trace import group_rows, moments

# B=2, eta=1, lam=1, C_gen=4, C_update=1, L_ref=2, N=4, longest responses 3,1,2,5,1,2,4,1,2,2.
WORKED = {
    "version": [0, 0, 0, 0, 1, 1, 2, 2, 3, 3],
    "launch": [0, 0, 0, 0, 5, 5, 8, 8, 11, 11],
    "done": [6, 2, 4, 10, 7, 9, None, 10, 15, 15],
    "ready_version": [1, 0, 0, 2, 1, 2, -1, 2, 3, 3],
    "update": [1, 0, 0, 2, 1, 2, -1, 3, 3, -1],
    "delay": [1, 0, 0, 2, 0, 1, -1, 1, 0, -1],
}
LAW = Law(4, 2, 1, 4.0, 1.0, 1.0, 2.0)
LONGEST = [3, 1, 2, 5, 1, 2, 4, 1, 2, 2]


@pytest.fixture(scope="module")
def worked():
    return drive(LAW, LONGEST)


@pytest.mark.parametrize("column", WORKED)
def test_worked_example(worked, column):
    values = group_rows(worked[0].ledger)[column].tolist()
    assert [None if v != v else v for v in values] == WORKED[column]


def test_worked_example_batches_polls_and_publishes(worked):
    clock, asked = worked
    trains = [step.train for step in asked if step.train]
    assert [t.groups for t in trains] == [(1, 2), (0, 4), (3, 5), (7, 8)]
    assert [t.publish // TICKS for t in trains] == [5, 8, 11, 16]
    assert [t.wait // TICKS for t in trains] == [4, 2, 2, 4]
    assert [tick // TICKS for tick in clock.ledger.poll] == [4, 7, 10, 15]
    assert clock.now == 16 * TICKS


def test_worked_example_moments(worked):
    m = moments(group_rows(worked[0].ledger), LAW, 16.0)
    assert (m["delay_mean"], m["delay_max"], m["delay4_mean"]) == (5 / 8, 2, (4 * 1 + 16 - 1) / 8)
    assert (m["version0_share"], m["never_trained_share"], m["busy"]) == (4 / 8, 2 / 10, 4 / 16)
    assert m["pre_queue_mean"] + m["in_queue_mean"] == m["delay_mean"]


def test_steady_begins_at_twice_the_look_ahead_and_one():
    law = Law(6, 2, 1, 4.0, 1.0, 1.0, 2.0)
    rows = group_rows(drive(law, LONGEST)[0].ledger)
    late = rows["update"] >= 4
    assert moments(rows, law, 1.0)["delay_mean_steady"] == rows["delay"][late].mean()


@pytest.mark.parametrize(("delay", "end"), [(0, 20), (1, 11), (2, 10)])
def test_fixed_delay_end_times(delay, end):
    assert drive(Law(4, 2, delay, 4.0, 1.0), [0])[0].now == end * TICKS


@pytest.mark.parametrize("c_gen", [0.0, 0.5, 4.0, 85.0, 300.0])
@pytest.mark.parametrize("delay", [0, 1, 2, 32, 128, 512])
def test_fixed_delay_is_min_n_d_at_every_update(delay, c_gen):
    n = 2 * delay + 3
    law = Law(n, 2, delay, c_gen, 1.0)
    rows = group_rows(drive(law, [0])[0].ledger)
    trained = rows["update"] >= 0
    assert (rows["delay"][trained] == np.minimum(rows["update"][trained], delay)).all()
    assert rows["delay"][trained].mean() == pytest.approx(fixed_delay_mean(n, delay), abs=1e-12)


@pytest.mark.parametrize("c_update", [1.0, 0.1, 2.5])
@pytest.mark.parametrize("c_gen", [0.0, 4.0, 85.0, 7.3])
@pytest.mark.parametrize("delay", [0, 1, 5, 32, 128])
def test_sim_time_is_the_closed_form(delay, c_gen, c_update):
    for n in (1, 2, 7, 40, 240):
        clock, _ = drive(Law(n, 1, delay, c_gen, c_update), [0])
        assert clock.now == round(fixed_delay_sim_time(n, delay, c_gen, c_update) * TICKS)


@pytest.mark.parametrize(("delay", "per_update"), [(0, 86), (1, 43), (5, 14.33), (32, 2.61), (128, 1.0)])
def test_time_per_update_in_the_steady_state(delay, per_update):
    clock, _ = drive(Law(12 * (delay + 1), 1, delay, 85.0, 1.0), [0])
    publish, rounds = np.array(clock.ledger.publish) / TICKS, delay + 1
    assert (publish[10 * rounds] - publish[2 * rounds]) / (8 * rounds) == pytest.approx(per_update, abs=0.005)


@pytest.mark.parametrize(("delay", "per_update"), [(32, 2.90), (128, 1.35)])
def test_time_per_update_over_240(delay, per_update):
    assert fixed_delay_sim_time(240, delay, 85.0, 1.0) / 240 == pytest.approx(per_update, abs=0.005)


def test_groups_that_cannot_be_consumed_are_traced_but_not_generated():
    clock, asked = drive(Law(4, 2, 2, 4.0, 1.0), [0])
    generated = [group for step in asked if step.launch for group in step.launch.groups]
    assert generated == list(range(8))
    assert len(clock.ledger) == (2 + 4) * 2
