"""generated = trained + dropped + in system: by hand, on random runs, and against a count response by response."""

from fractions import Fraction

import numpy as np
import pytest
from clock.policy_runs import runs
from hypothesis import given, settings

from delaysim.clock import TICKS
from delaysim.clock.ledger import FATES, NEVER
from delaysim.clock.token_ledger import KINDS, Entry, token_ledger, tokens_made

HAND = [
    # fate, launch, done, dropped [units], due [units or NEVER]
    ("trained", 0, 4, None, 4),
    ("queue", 0, 2, 5, 2),
    ("age", 1, 3, 6, 3),
    ("aborted", 2, None, 5, 8),
    ("aborted", 2, 4, 5, 4),
    ("timeout", 4, None, 7, 10),
    ("filtered", 4, 6, 6, 6),
    ("never", 6, 9, None, 9),
    ("never", 8, None, None, 14),
    ("never", 8, None, None, NEVER),
]
LENGTHS = [[4, 9], [1, 2], [3, 3], [6, 3], [5, 5], [7, 1], [2, 4], [8, 8], [9, 1], [3, 1]]
EXPECTED = {
    "trained": Entry(1, 13, 13),
    "queue": Entry(1, 3, 3),
    "age": Entry(1, 6, 6),
    "aborted": Entry(2, 19, 3 + 3 + 10),  # half way: 3 tokens of either
    "timeout": Entry(1, 8, 3 + 1),  # half way: 3.5 of 7, 1 of 1
    "filtered": Entry(1, 6, 6),
    "ready": Entry(1, 16, 16),
    "generating": Entry(2, 14, 3 + 1),  # a third of the way; of the other nobody knows when it would end
}


def columns(rows):
    nan = float("nan")
    fate, *times, due = zip(*rows, strict=True)
    units = [np.array([nan if t is None else t for t in column], float) for column in times]
    ticks = np.array([NEVER if t == NEVER else t * TICKS for t in due])
    named = dict(zip(("launch", "done", "dropped"), units, strict=True))
    return {**named, "fate": np.array([FATES.index(name) for name in fate], np.int8)}, ticks


def test_every_kind_of_group_by_hand():
    rows, due = columns(HAND)
    found = token_ledger(rows, np.array(LENGTHS), due, 10 * TICKS)
    assert dict(found.entries) == EXPECTED
    assert (found.trained, found.dropped) == (Entry(1, 13, 13), Entry(6, 42, 35))
    assert (found.in_system, found.generated) == (Entry(3, 30, 20), Entry(10, 85, 68))


def test_every_fate_is_a_kind_but_the_unknown_one():
    assert {*KINDS} >= {*FATES} - {"never"}
    assert len(set(KINDS)) == len(KINDS)


@given(runs())
@settings(max_examples=60, deadline=None)
def test_the_books_close_whatever_the_policies(run):
    found = token_ledger(run.rows, run.lengths, np.array(run.ledger.due), run.end)
    closed = tuple(map(sum, zip(found.trained, found.dropped, found.in_system, strict=True)))
    assert closed == tuple(found.generated)
    assert (found.generated.groups, found.generated.tokens) == (len(run.lengths), run.lengths.sum())
    assert found.trained.groups == sum(update >= 0 for update in run.ledger.update)
    assert found.dropped.groups == len(run.ledger.dropped)
    assert all(0 <= entry.made <= entry.tokens for entry in found.entries.values())
    assert found.trained.made == found.trained.tokens


@given(runs())
@settings(max_examples=40, deadline=None)
def test_made_tokens_are_those_of_each_response_at_its_own_pace(run):
    ledger = run.ledger
    made = tokens_made(run.rows, run.lengths, np.array(ledger.due), run.end)
    for group, responses in enumerate(run.lengths.tolist()):
        stop = min(ledger.dropped.get(group, (0, run.end))[1], run.end)
        took, until = ledger.due[group] - ledger.launch[group], stop - ledger.launch[group]
        share = min(Fraction(until, took), 1) if took else 1
        if ledger.due[group] == NEVER:
            share = 0  # generation slots: only the engine knows how far the responses were
        assert made[group] == sum(min(length, int(max(responses) * share)) for length in responses)


def test_long_runs_of_long_responses_stay_exact():
    """100,000 tokens over 10^7 units: the products stay below 2^63."""
    rows, due = columns([("never", 0, None, None, 10_000_000)])
    made = tokens_made(rows, np.array([[100_000, 99_999]]), due, 9_999_999 * TICKS)
    assert made.tolist() == [2 * 99_999]


@pytest.mark.parametrize("elapsed", [0, 1, 2])
def test_a_group_that_takes_no_time_is_whole_at_once(elapsed):
    rows, due = columns([("aborted", 5, 5, 5 + elapsed, 5)])
    assert tokens_made(rows, np.array([[4, 2]]), due, 9 * TICKS).tolist() == [6]
