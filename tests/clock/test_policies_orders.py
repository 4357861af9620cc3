"""Each order on an example by hand: B=1, four groups in the system, a group takes its size, an update takes 10."""

import pytest
from clock.policies import play

from delaysim.clock import Law

SIZES = [1, 18, 3, 2, 5, 1, 1, 1]
"""Groups 0 to 3 are launched at 0 and done at 1, 18, 3, 2. One more is launched at each publish: where update 0 takes
group 0 at 1 and is published at 11, group 4 is done at 16, 5 at 22 and 6 at 32."""
TAKEN = {
    "completion": [0, 3, 2, 4, 1],  # at 11: 3 before 2; at 21: 2, 4, 1 are there; at 31: 4, 1, 5; at 41: 1, 5, 6
    "submit": [0, 2, 1, 3, 4],  # at 11: 2, 3; at 21: 1, 3, 4; at 31: 3, 4, 5; at 41: 4, 5, 6
    "version": [0, 3, 2, 1, 4],  # 1, 2 and 3 are of version 0, by completion 3, 2, 1; then 4 of version 1
    "version_in_order": [0, 3, 2, 1, 4],  # group 1 is unfinished at 11, and no older than 3
    "lifo": [0, 2, 1, 5, 6],  # at 11: 2, done at 3; at 21: 1, at 18; at 31: 5, at 22; at 41: 6, at 32
    "freshest": [0, 3, 4, 5, 6],  # at 11 two of version 0: the earlier one; then always the newest version
    "shortest": [0, 3, 2, 5, 6],  # at 21: 2 has 3, 4 has 5; at 31: 5 has 1
}


def law(order, eta=3):
    return Law(5, 1, eta, 1.0, 10.0, 1.0, 1.0, order=order)


def taken(law, sizes, seed=0):
    clock, asked = play(law, lambda prompt, attempt: (sizes + [1] * 9)[prompt], seed=seed)
    return [group for step in asked if step.train for group in step.train.groups], clock.ledger


@pytest.mark.parametrize("order", sorted(TAKEN))
def test_taken_by_hand(order):
    groups, ledger = taken(law(order), SIZES)
    assert groups == TAKEN[order]
    assert [tick / 1e6 for tick in ledger.poll] == [1, 11, 21, 31, 41]


def test_in_order_waits_for_the_group_that_comes_next():
    """Group 1 is next at 11 and done at 18."""
    groups, ledger = taken(law("in_order"), SIZES)
    assert groups == [0, 1, 2, 3, 4]
    assert [tick / 1e6 for tick in ledger.poll] == [1, 18, 28, 38, 48]


def test_version_in_order_waits_for_an_older_version_where_version_does_not():
    """Two in the system: 1 (version 0) is done at 30, 2 (version 1, launched at 11) at 13, 3 (launched at 23) at 24."""
    sizes = [1, 30, 2]
    assert taken(law("version", eta=1), sizes)[0][:4] == [0, 2, 3, 1]
    groups, ledger = taken(law("version_in_order", eta=1), sizes)
    assert groups[:3] == [0, 1, 2]
    assert ledger.poll[1] == 30_000_000


def test_random_takes_any_that_is_there_and_the_same_for_a_seed():
    runs = [taken(law("random"), SIZES, seed)[0] for seed in range(24)]
    assert {run[1] for run in runs} == {2, 3}
    assert {run[2] for run in runs} == {1, 2, 3, 4}
    assert taken(law("random"), SIZES, 7)[0] == runs[7]
