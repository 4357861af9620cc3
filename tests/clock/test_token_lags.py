"""Delays by token: closed forms, and a recount version by version in fractions."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from clock.cases import WORKED_LAW, WORKED_LENGTHS
from clock.helpers import drive
from clock.length_laws import HEAVY
from clock.policy_runs import runs
from hypothesis import given, settings

from delaysim.clock import TICKS, Law
from delaysim.clock.lengths import KeyedLengths
from delaysim.clock.tokens import EDGES, sampler_versions, token_lags
from delaysim.clock.trace import group_rows, run_alone


@pytest.mark.parametrize("delay", [1, 2, 7, 32])
def test_fixed_delay_spreads_the_versions_of_a_response_over_its_delay(delay):
    """A group is launched at the publish of version s and done at that of s + D: its tokens lag D, D - 1, ..., 1."""
    law = Law(200, 2, delay, float(delay), 1.0)
    ledger, rows = finished(law, [1])
    late = {name: column[4 * delay :] for name, column in rows.items()}
    found = token_lags(late, np.full((len(late["launch"]), 3), 60), law, ledger.publish)
    assert found.group_start == found.token_start == delay
    assert found.token == found.response == pytest.approx((delay + 1) / 2)
    assert found.newest == 0
    below = [0, *(min(edge, delay) / delay for edge in EDGES), 1]
    assert found.histogram == pytest.approx(np.diff(below).tolist(), abs=1e-9)


def test_two_responses_of_unequal_length_by_hand():
    """Launched at 0, done at 8, trained at update 4; versions 1, 2, 3 from 2, 4, 7 on; lengths 4 and 2.

    The longer has a token every 2 units: lags 4, 3, 2 and half 2, half 1. The shorter ends at 4: lags 4 and 3.
    """
    made = {"launch": [0.0], "done": [8.0], "update": [4], "delay": [4]}
    rows = {name: np.array(column) for name, column in made.items()}
    found = token_lags(
        rows, np.array([[4, 2]]), Law(5, 1, 4, 8.0, 1.0), [2 * TICKS, 4 * TICKS, 7 * TICKS, 9 * TICKS], edges=(1, 2, 3)
    )
    assert found.token == pytest.approx((4 + 3 + 2 + 1.5 + 4 + 3) / 6)
    assert found.response == pytest.approx((10.5 / 4 + 3.5) / 2)
    assert (found.group_start, found.token_start, found.newest) == (4.0, 4.0, 1.0)
    assert found.histogram == pytest.approx((0.5 / 6, 1.5 / 6, 2 / 6, 2 / 6))


@given(runs())
@settings(max_examples=40, deadline=None)
def test_lags_agree_with_a_recount_version_by_version(run):
    found = token_lags(run.rows, run.lengths, run.law, run.ledger.publish, edges=(0, 1, 2, 4))
    spread, newest = recounted(run)
    tokens = sum(sum(lags.values()) for lags in spread)
    means = [sum(lag * part for lag, part in lags.items()) / sum(lags.values()) for lags in spread]
    assert found.token == pytest.approx(float(sum(lag * p for lags in spread for lag, p in lags.items()) / tokens))
    assert found.response == pytest.approx(float(sum(means) / len(means)))
    assert found.newest == pytest.approx(sum(newest) / len(newest))
    shares = [sum(p for lags in spread for lag, p in lags.items() if low < lag <= high) / tokens
              for low, high in ((-9, 0), (0, 1), (1, 2), (2, 4), (4, 99))]  # fmt: skip
    assert found.histogram == pytest.approx([float(share) for share in shares], abs=1e-9)


def recounted(run):
    """Per trained response its tokens by lag, exactly; per trained group the lag of its last token."""
    ledger, (ticks, versions) = run.ledger, sampler_versions(run.law, run.ledger.publish)
    swaps, versions = [0, *ticks.tolist(), 10**15], [0, *versions.tolist()]
    spread, newest = [], []
    for group, update in enumerate(ledger.update):
        if update < 0:
            continue
        launch, took, lengths = ledger.launch[group], ledger.due[group] - ledger.launch[group], run.lengths[group]
        newest.append(update - versions[sum(swap <= launch + took for swap in swaps) - 1])
        for length in lengths.tolist():
            ends = launch + Fraction(took * length, int(lengths.max()))
            spread.append({})
            for version, (start, stop) in zip(versions, pairwise(swaps), strict=True):
                inside = Fraction(max(0, min(ends, stop) - max(launch, start)))
                if took == 0:
                    inside = Fraction(start <= launch < stop)
                if inside:
                    spread[-1][update - version] = inside * length / (Fraction(ends - launch) if took else 1)
    return spread, newest


@given(runs())
@settings(max_examples=60, deadline=None)
def test_the_versions_at_the_sampler_are_those_of_the_launches(run):
    ticks, versions = sampler_versions(run.law, run.ledger.publish)
    at_launch = [sum(tick <= launch for tick in ticks) for launch in run.ledger.launch]
    assert run.ledger.version.tolist() == [[0, *versions][count] for count in at_launch]


def test_without_delay_no_token_is_late():
    law = Law(20, 2, 0, 5.0, 1.0, 1.0, 2.0)
    ledger, rows = finished(law, [1, 2, 3, 2])
    found = token_lags(rows, np.full((len(ledger), 2), 3), law, ledger.publish)
    assert (found.token, found.response, found.newest, found.histogram[0]) == (0.0, 0.0, 0.0, 1.0)


def test_weights_that_never_come_leave_the_base_policy():
    """A swap every 9 updates in a run of 4: every token has version 0, so the lag is the update."""
    ledger, rows = finished(WORKED_LAW, WORKED_LENGTHS)
    found = token_lags(rows, np.full((10, 2), 3), replace(WORKED_LAW, sync_every=9), ledger.publish)
    assert found.token == found.response == pytest.approx(1.5)


def test_where_nothing_was_trained_there_is_no_lag():
    rows = {"update": np.array([-1])}
    with pytest.raises(ValueError, match="no group was trained"):
        token_lags(rows, np.array([[3]]), WORKED_LAW, [TICKS])


def test_the_steady_state_of_coupled_delays_swapped_and_not():
    """clock.md 2.8, simulated there by other code: by token 202 -> 135, by response 158 -> 115.

    The last token is made when the group is done: its lag is the time in the queue.
    """
    law = Law(1200, 8, 157, 85.0, 1.0, 1.0, 600.0)
    lengths = KeyedLengths(HEAVY, 8, 0)
    ledger = run_alone(law, lengths).ledger
    rows = group_rows(ledger)
    late = rows["update"] >= 2 * 158
    table = lengths.table(len(ledger))[late]
    found = token_lags({name: column[late] for name, column in rows.items()}, table, law, ledger.publish)
    assert found.token_start == pytest.approx(202, rel=0.02)
    assert found.token == pytest.approx(135, rel=0.02)
    assert found.group_start == pytest.approx(158, rel=0.02)
    assert found.response == pytest.approx(115, rel=0.02)
    assert found.newest == pytest.approx(rows["in_queue"][late].mean())


def finished(law, lengths):
    clock, _ = drive(law, lengths)
    return clock.ledger, group_rows(clock.ledger)
