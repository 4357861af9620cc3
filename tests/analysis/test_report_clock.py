"""The report on runs under policies of the clock: length bias, time, speed, from accounts written by hand."""

import pytest
from test_report import Text
from written import write_run

from delaysim.analysis.report import Asked, page_of

FATES = ("trained", "queue", "age", "aborted", "timeout", "filtered", "generating", "ready")


def account(delay=8.0, ratio=1.0, longest=1.0, kind=None, waiting=0.25, run_ratio=None, held=None, chance=0.001):
    """A quarter of groups and three tenths of tokens are dropped as `kind`; a fifth of what is made stays inside."""
    survival = [1.0] * 9 + [longest]
    shares = {"trained": 0.75, kind: 0.25} if kind else {"trained": 1.0}
    tilt = {"ratio": ratio, "ks": 0.125, "shares": shares, "survival": survival, "chance": chance}
    run = {**tilt, "ratio": ratio if run_ratio is None else run_ratio}
    lengths = {"run": run, "decided": tilt, "steady": tilt, "policy": "steady"}
    books = dict.fromkeys(FATES, (0, 0)) | {"trained": (550, 500), "generating": (100, 150), "ready": (100, 50)}
    books |= {kind: (250, 300)} if kind else {"trained": (800, 800)}
    return {
        "lengths": lengths, "longest": lengths, "rewards": {**lengths, "steady": {**tilt, "ratio": 2 - ratio}},
        "delay": {"mean": delay, "max": 2 * delay},
        "tokens": {name: {"groups": g, "tokens": t, "made": t} for name, (g, t) in books.items()},
        "held": held or {"look-ahead": 1.0, "workers": 0.0},
        "learner": {"updating": 1 - waiting - 0.05, "syncing": 0.05, "waiting": waiting},
        "filled": {"generating": 20.0, "scoring": 1.0, "ready": 3.5},
    }  # fmt: skip


DROPS = {
    "no drop": ((), account(run_ratio=0.97, waiting=0.1)),
    "age_max=30": (("clock.age_max=30",), account(6.0, 0.94, 0.5, "age")),
    "timeout=40": (("clock.timeout=40",), account(4.0, 0.9, 0.25, "timeout", waiting=0.4)),
}


@pytest.fixture(scope="module")
def policies(tmp_path_factory):
    root = tmp_path_factory.mktemp("policies")
    for i, (overrides, found) in enumerate(DROPS.values()):
        for seed in range(2):
            write_run(root, "grpo", 8 - i, seed, suite="simulated_async", overrides=overrides, account=found)
    return root


@pytest.fixture(scope="module")
def seen(policies):
    return Text(page_of([policies], {}, Asked()))


def titled(text, key):
    return " ".join(text.sections[key].split())


def test_policies_are_one_axis_named_by_their_limits(seen):
    assert "6 runs of simulated_async" in " ".join(seen.summary)
    assert "no drop, age_max=30 and timeout=40; eta = auto" in " ".join(seen.summary)
    assert ["drop", "eta=auto"] in seen.rows
    assert seen.row("no drop", "1.000 ±0.000*") == ()
    assert "clock.age_max" not in [cell for row in seen.rows for cell in row]


def test_the_worst_cell_titles_the_length_bias(seen):
    said = (
        "Length bias timeout=40 trained on responses 10% shorter than generated; 100% of the shortest tenth of groups "
    )
    assert titled(seen, "bias").startswith(said + "were trained on, 25% of the longest")


def test_bias_by_cell(seen):
    """Equal seeds leave an interval of 0; rewards are as much higher as lengths are shorter."""
    rows = {row[0]: row[2:] for row in seen.rows if len(row) == 9 and row[2].startswith(("0.9", "1.000"))}
    assert rows["timeout=40"] == ["0.900 ±0.000", "0.900 ±0.000", "0.125", "100%", "25%", "25%", "1.100 ±0.000"]
    assert rows["no drop"] == ["1.000 ±0.000", "0.970 ±0.000", "0.125", "100%", "100%", "0%", "1.000 ±0.000"]


def test_every_token_is_somewhere(seen):
    """500 + 300 + 200 of 1,000 tokens; 250 of 1,000 groups."""
    assert seen.row("age_max=30", "eta=auto", "1,000") == ("50%", "30% (25%)", "0% (0%)", "20%")
    assert seen.row("timeout=40", "eta=auto", "1,000") == ("50%", "0% (0%)", "30% (25%)", "20%")
    assert seen.row("no drop", "eta=auto", "1,000") == ("80%", "0% (0%)", "0% (0%)", "20%")


def test_busy_and_idle_are_all_of_the_time(seen):
    assert seen.row("timeout=40", "eta=auto", "55.0%") == ("5.0%", "40.0%", "20.0", "1.0", "3.5", "look-ahead 100.0%")
    said = (
        "Time Generation is held by the look-ahead 100% of the time; the learner waits 40% of it with timeout=40, 10% "
    )
    assert titled(seen, "time").startswith(said + "with no drop")


def test_speed_against_delay(seen):
    """An update takes 86 / (1 + 8 - i): 9/86, 8/86 and 7/86 updates a unit, at delays of 8, 6 and 4: all on the front.

    9/7 = 1.29.
    """
    said = "No drop makes 1.29 times the updates of timeout=40 for a mean delay of 8.0 in place of 4.0"
    assert titled(seen, "speed").startswith(f"Speed against delay {said}")
    assert seen.row("timeout=40", "eta=auto", "0.0814") == ("78%", "4.0", "yes")
    assert seen.row("no drop", "eta=auto", "0.105") == ("100%", "8.0", "yes")


@pytest.mark.slow
def test_look_aheads_share_an_axis_with_auto_and_the_front_is_marked(tmp_path):
    """eta=4 is as slow as eta=1 by its account and no fresher: off the front. 22/86 = 0.256 is the fastest.

    eta=20 has 21/22 = 95.5 % of its speed at 18 in place of 21 updates: the answer, 21 times the updates of eta=0.
    """
    for eta, delay in ((0, 0.0), (1, 1.0), (20, 18.0), (21, 21.0)):
        overrides = () if eta == 21 else (f"clock.eta={eta}",)
        for seed in range(2):
            write_run(tmp_path, "grpo", eta, seed, suite="simulated_async", overrides=overrides, account=account(delay))
    late = account(9.0, held={"look-ahead": 0.4, "workers": 0.6})
    for seed in range(2):
        write_run(tmp_path, "grpo", 1, seed, suite="simulated_async", overrides=("clock.eta=4",), account=late)
    seen = Text(page_of([tmp_path], {}, Asked()))
    assert "eta = 0, 1, 4, 20, 21 (auto)" in " ".join(seen.summary)
    said = "eta=20 makes 21 times the updates of eta=0 for a mean delay of 18.0 in place of 0.0; nothing is 5 % faster"
    assert titled(seen, "speed").startswith(f"Speed against delay {said}")
    assert seen.row("GRPO", "eta=4", "0.0233") == ("9%", "9.0", "no")
    assert seen.row("GRPO", "eta=21", "0.256") == ("100%", "21.0", "yes")
    assert "held by the look-ahead in 4 cells and the workers in 1 cell" in titled(seen, "time")
    assert "No group was dropped: what was trained on stands for what was generated" in titled(seen, "bias")
    assert seen.titles[0] == "For 2 points of accuracy GRPO affords eta=21"


@pytest.mark.slow
def test_a_run_alone_has_its_own_and_older_ones_have_none(policies, tmp_path):
    run = next(path for path in policies.glob("*/*") if "age_max" in path.name)
    seen = Text(page_of([run], {}, Asked()))
    assert {"bias", "time"} <= seen.sections.keys()
    assert "speed" not in seen.sections
    assert "GRPO trained on responses 6% shorter than generated" in titled(seen, "bias")
    assert "held by the look-ahead 100% of the time; the learner waits 25% of it" in titled(seen, "time")
    write_run(tmp_path, "grpo", 8, 0)
    assert not {"bias", "time", "speed"} & Text(page_of([tmp_path], {}, Asked())).sections.keys()


@pytest.mark.slow
def test_a_bias_that_chance_makes_is_not_told_as_one(tmp_path):
    """Two runs with a standard error of 0.03 each: 2 * 0.03 / sqrt(2) = 4.2 %."""
    for seed in range(2):
        found = account(8.0, 0.97, 0.9, "age", chance=0.03)
        write_run(tmp_path, "grpo", 8, seed, suite="simulated_async", overrides=("clock.age_max=30",), account=found)
    title = titled(Text(page_of([tmp_path], {}, Asked())), "bias")
    assert "GRPO trained on responses 3% shorter than generated (chance alone: ±4.2%)" in title
