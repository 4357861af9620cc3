"""generated = trained + dropped + in system: by hand, on random runs, and against a count response by response."""

from fractions import Fraction

import numpy as np
import pytest
from clock.cases import laws
from clock.helpers import drive
from hypothesis import given, settings
from hypothesis import strategies as st

from delaysim.clock import TICKS
from delaysim.clock.ledger import NEVER
from delaysim.clock.token_ledger import KINDS, Entry, token_ledger, tokens_made
from delaysim.clock.trace import FATES, group_rows

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
    ("never", None, None, None, NEVER),
]
LENGTHS = [[4, 9], [1, 2], [3, 3], [6, 3], [5, 5], [7, 1], [2, 4], [8, 8], [9, 1], [3, 1], [5, 6]]
EXPECTED = {
    "trained": Entry(1, 13, 13),
    "queue": Entry(1, 3, 3),
    "age": Entry(1, 6, 6),
    "aborted": Entry(2, 19, 3 + 3 + 10),  # half way: 3 tokens of either
    "timeout": Entry(1, 8, 3 + 1),  # half way: 3.5 of 7, 1 of 1
    "filtered": Entry(1, 6, 6),
    "ready": Entry(1, 16, 16),
    "generating": Entry(2, 14, 3 + 1),  # a third of the way; of the other nobody knows when it would end
    "unsent": Entry(1, 11, 0),
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
    assert (found.in_system, found.generated) == (Entry(4, 41, 20), Entry(11, 96, 68))


def test_every_fate_is_a_kind_but_the_unknown_one():
    assert {*KINDS} >= {*FATES} - {"never"}
    assert len(set(KINDS)) == len(KINDS)


@given(laws(), st.integers(0, 2**31))
@settings(max_examples=60, deadline=None)
def test_the_books_close_on_any_run(law, seed):
    ledger, lengths, rows = run(law, seed)
    found = token_ledger(rows, lengths, np.array(ledger.due), ledger.publish[-1])
    closed = tuple(map(sum, zip(found.trained, found.dropped, found.in_system, strict=True)))
    assert closed == tuple(found.generated)
    assert (found.generated.groups, found.generated.tokens) == (len(lengths), lengths.sum())
    assert found.trained.groups == law.n_updates * law.groups_per_update
    assert all(0 <= entry.made <= entry.tokens for entry in found.entries.values())
    assert found.trained.made == found.trained.tokens


@given(laws(), st.integers(0, 2**31))
@settings(max_examples=40, deadline=None)
def test_made_tokens_are_those_of_each_response_at_its_own_pace(law, seed):
    ledger, lengths, rows = run(law, seed)
    end, made = ledger.publish[-1], tokens_made(rows, lengths, np.array(ledger.due), ledger.publish[-1])
    for group, responses in enumerate(lengths.tolist()):
        took, until = ledger.due[group] - ledger.launch[group], end - ledger.launch[group]
        share = Fraction(until, took) if took else Fraction(1)
        assert made[group] == sum(min(length, int(max(responses) * min(share, 1))) for length in responses)


def run(law, seed):
    """A finished run of groups of three; the lengths are those of the groups that the clock had generated."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 7, size=((law.look_ahead + 1 + law.n_updates) * law.groups_per_update, 3))
    clock, _ = drive(law, lengths.max(axis=1).tolist())
    count = min(len(clock.ledger), law.consumable or len(clock.ledger))
    rows = group_rows(clock.ledger)
    return clock.ledger, lengths[:count], rows | {"dropped": np.full(len(clock.ledger), np.nan)}


def test_long_runs_of_long_responses_stay_exact():
    """100,000 tokens over 10^7 units: the products stay below 2^63."""
    rows, due = columns([("never", 0, None, None, 10_000_000)])
    made = tokens_made(rows, np.array([[100_000, 99_999]]), due, 9_999_999 * TICKS)
    assert made.tolist() == [2 * 99_999]


@pytest.mark.parametrize("elapsed", [0, 1, 2])
def test_a_group_that_takes_no_time_is_whole_at_once(elapsed):
    rows, due = columns([("aborted", 5, 5, 5 + elapsed, 5)])
    assert tokens_made(rows, np.array([[4, 2]]), due, 9 * TICKS).tolist() == [6]
