"""What a run says of its account: real runs of the clock in small, their numbers and their words."""

import numpy as np
import pytest

from delaysim.clock import Law
from delaysim.clock.lengths import KeyedLengths, Lognormal
from delaysim.clock.trace import group_rows, run_alone
from delaysim.run.account import read_account, write_account
from delaysim.run.account_lines import account_lines, closing_lines

SHORT = Lognormal(20, 0.7, 0.5, 100)
LAW = {
    "n_updates": 400,
    "groups_per_update": 4,
    "look_ahead": 16,
    "c_gen": 9.0,
    "c_update": 1.0,
    "lam": 1.0,
    "l_ref": 20.0,
}


def accounted(path, rewards=None, in_flight=False, simulated=True, **given):
    """The account of a run with drawn lengths, as it is read back, and its law as a manifest has it."""
    law = Law(**LAW | given)
    lengths = KeyedLengths(SHORT, 4, 0)
    ledger = run_alone(law, lengths).ledger
    table = lengths.of_ledger(ledger, len(ledger))
    write_account(path, ledger, group_rows(ledger), table, law, rewards and rewards(table), in_flight, simulated)
    return read_account(path), vars(law)


def of(title, lines):
    """The lines of one title, the title left out."""
    start = next((i for i, line in enumerate(lines) if line.startswith(title)), len(lines))
    rest = lines[start + 1 :]
    more = next((i for i, line in enumerate(rest) if not line.startswith(" ")), len(rest))
    return [line[15:] for line in lines[start : start + 1 + more]]


def test_a_run_that_drops_nothing(tmp_path):
    found, law = accounted(tmp_path)
    lines = account_lines(found, law)
    delay = found["delay"]
    assert delay["mean"] == pytest.approx(16, abs=0.1)
    older = f"{delay['older']:.0%} were older than 16: it bounds the mean, not the maximum"
    assert of("asked for", lines) == [
        f"a look-ahead of 16: mean {delay['mean']:.1f}, p90 {delay['p90']:g}, max {delay['max']} (steady)", older
    ]  # fmt: skip
    assert of("held by", lines)[0] == "look-ahead 100.0% of the time"
    assert of("dropped", lines) == of("LENGTH BIAS", lines) == []
    assert found["lengths"]["decided"]["ratio"] == 1.0
    assert sum(found["held"].values()) == pytest.approx(1) == sum(found["learner"].values())


def test_an_age_limit_is_named_with_what_it_did_and_what_to_do(tmp_path):
    found, law = accounted(tmp_path, age_max=12)
    steady = found["lengths"]["steady"]
    assert steady["ratio"] == pytest.approx(0.73, abs=0.05)
    assert of("LENGTH BIAS", account_lines(found, law)) == [
        f"trained {1 - steady['ratio']:.1%} shorter than generated",
        f"clock.age_max=12 dropped {steady['shares']['age']:.1%} of groups, "
        f"on average {steady['means']['age'] / steady['generated'] - 1:.0%} longer",
        "raise it, or drop nothing and lower clock.eta for the mean delay",
    ]
    assert of("held by", closing_lines(found, law))[2] == "what clock.age_max drops makes it less"


def test_a_short_run_blames_its_own_end(tmp_path):
    found, law = accounted(tmp_path, n_updates=30)
    run = found["lengths"]["run"]
    assert run["ratio"] < 0.95
    assert of("LENGTH BIAS", closing_lines(found, law))[1:] == [
        f"{run['shares']['never']:.1%} of groups were left at the end, "
        f"on average {run['means']['never'] / run['generated'] - 1:.0%} longer",
        "more updates or a smaller clock.eta make it less",
    ]


def test_rewards_that_fall_with_length_are_biased_too(tmp_path):
    found, law = accounted(tmp_path, rewards=lambda table: (table < 25).astype(float), timeout=9.0)
    steady = found["rewards"]["steady"]
    lines = of("REWARD BIAS", closing_lines(found, law))
    assert lines[0] == f"trained {steady['ratio'] - 1:.1%} higher than generated"
    assert found["reward_means"]["steady"]["survival"][0] < found["reward_means"]["steady"]["survival"][-1]


def test_steps_on_one_mini_batch_are_counted(tmp_path):
    found, law = accounted(tmp_path, steps=3)
    mean, most = found["delay"]["mean"], found["delay"]["max"]
    assert of("asked for", closing_lines(found, law))[-1] == (
        f"in optimiser steps, 3 an update: mean {3 * mean + 1:.1f}, max {3 * most + 2}"
    )


def test_workers_are_named_where_they_hold(tmp_path):
    found, law = accounted(tmp_path, workers=20)
    assert found["held"]["workers"] > 0.9
    assert of("held by", closing_lines(found, law))[1] == "clock.workers sets the mean delay, about workers / B"
    assert found["delay"]["mean"] == pytest.approx(20 / 4, rel=0.15)


@pytest.mark.parametrize(
    "given",
    [{}, {"age_max": 12, "abort_age": 20}, {"timeout": 9.0, "workers": 40}, {"queue_drop": 1.0, "look_ahead": 40},
     {"look_ahead": None, "workers": 30}, {"slots": 60, "lam": 0.0, "group_size": 4}, {"arrivals": 3.0},
     {"start": "ramp", "n_updates": 8}, {"sync_time": 0.5, "steps": 2}],
)  # fmt: skip
def test_every_line_of_the_closing_words_fits_a_terminal(tmp_path, given):
    found, law = accounted(tmp_path, in_flight=True, **given)
    assert [line for line in account_lines(found, law) if len(line) > 80] == []


def test_lags_by_token_are_told_where_they_are_asked_for(tmp_path):
    found, law = accounted(tmp_path, in_flight=True)
    lags = found["token_lags"]
    assert lags["group_start"] > lags["response"] > lags["newest"]
    assert lags["token_start"] > lags["token"]
    assert np.sum(lags["histogram"]) == pytest.approx(1)
    assert f"by token {lags['token']:.1f}" in of("in flight", account_lines(found, law))[1]


def test_of_delays_that_no_clock_made_nothing_is_said_to_hold_them(tmp_path):
    found, law = accounted(tmp_path, simulated=False)
    titles = {line[:15].strip() for line in account_lines(found, law)} - {""}
    assert titles == {"tokens", "lengths"}


def test_a_directory_without_an_account_says_nothing(tmp_path):
    assert account_lines(read_account(tmp_path), vars(Law(**LAW))) == []
