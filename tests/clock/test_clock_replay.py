"""Recorded delays come out as they went in; a constant one is the fixed delay."""

import numpy as np
import pytest
from clock.helpers import drive
from hypothesis import given, settings
from hypothesis import strategies as st

from delaysim.clock import Launch, Law, Stalled
from delaysim.clock.replay import Replay, replay_alone
from delaysim.clock.trace import group_rows, moments


def law(n, b, look_ahead=0):
    return Law(n, b, look_ahead, 85.0, 2.0)


def asked(clock):
    """Every step of a replay."""
    steps, answer, found = clock.steps(), None, []
    try:
        while True:
            step = steps.send(answer)
            found.append(step)
            answer = None if step.launch is None else [7] * len(step.launch.groups)
    except StopIteration:
        return found


def test_steps_by_hand():
    """Delays 5, 1, 0, 2 of updates 0 to 3: versions 0, 0, 2, 1. Two groups each; ids in the order of launch."""
    found = asked(clock := Replay(law(4, 2), [5, 1, 0, 2]))
    steps = [(s.launch and (s.launch.version, list(s.launch.groups)), s.train and s.train[:3]) for s in found]
    assert steps == [
        ((0, [0, 1, 2, 3]), None),
        (None, (0, (0, 1), (0, 0))),
        ((1, [4, 5]), (1, (2, 3), (0, 0))),
        ((2, [6, 7]), None),
        (None, (2, (6, 7), (2, 2))),
        (None, (3, (4, 5), (1, 1))),
    ]
    assert [s.train.publish for s in found if s.train] == [2_000_000, 4_000_000, 6_000_000, 8_000_000]
    assert (clock.version, clock.now) == (4, 8_000_000)


def test_rows_by_hand():
    rows = group_rows(replay_alone(Replay(law(4, 2), [5, 1, 0, 2])).ledger)
    assert rows["update"].tolist() == [0, 0, 1, 1, 3, 3, 2, 2]
    assert rows["version"].tolist() == [0, 0, 0, 0, 1, 1, 2, 2]
    assert rows["delay"].tolist() == [0, 0, 1, 1, 2, 2, 0, 0]
    assert rows["launch"].tolist() == [0, 0, 0, 0, 2, 2, 4, 4]
    assert rows["consumed"].tolist() == [0, 0, 2, 2, 6, 6, 4, 4]
    assert rows["done"].tolist() == rows["consumed"].tolist()
    assert rows["pre_queue"].tolist() == rows["delay"].tolist()


def test_one_delay_per_group_by_hand():
    """Mini-batches (0, 9), (1, 0), (0, 2): versions (0, 0), (0, 1), (2, 0)."""
    clock = replay_alone(Replay(law(3, 2), [0, 9, 1, 0, 0, 2], per_group=True))
    rows = group_rows(clock.ledger)
    assert rows["version"].tolist() == [0, 0, 0, 0, 1, 2]
    assert rows["update"].tolist() == [0, 0, 1, 2, 1, 2]
    assert moments(rows, law(3, 2), 6.0)["delay_mean"] == pytest.approx((0 + 0 + 1 + 0 + 0 + 2) / 6)


@pytest.mark.parametrize("delay", [0, 1, 2, 7, 50])
def test_a_constant_delay_is_the_fixed_delay(delay):
    """Same groups with the same ids in the same mini-batches, of the same versions; times apart."""
    fixed, steps = drive(law(20, 3, delay), [9])
    replayed = asked(clock := Replay(law(20, 3), [delay]))
    trains = [[s.train[:3] for s in found if s.train] for found in (steps, replayed)]
    assert trains[0] == trains[1]
    launches = [[s.launch for s in found if s.launch] for found in (steps, replayed)]
    assert launches[0] == launches[1]
    rows = [group_rows(ledger) for ledger in (fixed.ledger, clock.ledger)]
    for name in ("group", "prompt", "attempt", "version", "update", "delay"):
        assert rows[0][name][:60].tolist() == rows[1][name].tolist()


@settings(deadline=None)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=60), st.integers(1, 30), st.integers(1, 4), st.booleans())
def test_every_group_has_the_delay_that_was_recorded(delays, n, b, per_group):
    found = asked(clock := Replay(law(n, b), delays, per_group))
    rows = group_rows(clock.ledger)
    needed = (
        np.resize(delays, n * b).reshape(n, b) if per_group else np.repeat(np.resize(delays, n)[:, None], b, axis=1)
    )
    for update in range(n):
        mine = rows["update"] == update
        assert sorted(rows["delay"][mine]) == sorted(np.minimum(needed[update], update))
    assert (np.diff(rows["version"]) >= 0).all()
    launched, version = set(), 0
    for step in found:
        if step.launch:
            assert step.launch == Launch.fresh(version, step.launch.groups)
            launched |= set(step.launch.groups)
        if step.train:
            assert step.train.update == version
            assert set(step.train.groups) <= launched
            version += 1
    assert sorted(launched) == list(range(n * b))


def test_a_group_that_is_lost_is_named():
    steps = Replay(law(3, 2), [1]).steps()
    steps.send(None)
    with pytest.raises(Stalled, match=r"group|and 1 \(version 0\) is lost"):
        steps.send([5, None, 5, 5])


def test_an_answer_of_another_length_is_refused():
    steps = Replay(law(3, 2), [1]).steps()
    steps.send(None)
    with pytest.raises(ValueError, match="must be answered"):
        steps.send([5])
