"""What mode=plan says of disk space, launches and time."""

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console
from settings import make_config

from delaysim.cli.launches import expected
from delaysim.cli.plan import plan_one, print_plan


def test_recorded_ratios_are_in_the_disk_estimate():
    """Two float32 a token: every response of the longest length, all updates or a tenth of them."""
    found = {kind: plan_one(make_config(f"record.ratios={kind}", "D=1")).disk for kind in ("all", "sample", "none")}
    whole = 240 * 64 * 48 * 8
    assert found["all"] - found["none"] == pytest.approx(whole)
    assert plan_one(make_config("record.ratios=sample", "D=1")).ratios == pytest.approx(whole / 10)
    assert found["sample"] - found["none"] == pytest.approx(whole / 10)


def launches(*overrides, suite="simulated_async"):
    return expected(make_config("updates=100", *overrides, suite=suite))


def test_launches_are_counted_by_the_clock_where_policies_decide_them():
    """Of 800 groups to train on: closed forms for plain runs; with drops what is trained, dropped and in the system."""
    plain = launches("D=4", suite="fixed_delay")
    assert (plain.groups, plain.dropped, plain.sim_time) == (800, 0, 19 * 86 + 85 + 5)
    assert launches("clock.eta=10").groups == 800 + 10 * 8
    dropping = launches("clock.eta=10", "clock.abort_age=12", "clock.requeue=true", "C_gen=9")
    assert dropping.dropped > 50
    assert 870 < dropping.groups - dropping.dropped <= 800 + 10 * 8
    assert dropping.sim_time > 100
    replaced = launches("clock.eta=10", "clock.zero_variance=replaced", "lengths.flat=0.5")
    assert replaced.dropped / replaced.groups == pytest.approx(0.5, abs=0.06)
    assert launches("clock.replay=0.5", "clock.eta=10").groups < 800


@pytest.mark.parametrize(
    "overrides",
    [
        ("clock.eta=none", "clock.workers=50"),
        ("clock.eta=none", "clock.arrivals=4", "lam=0"),
        ("lam=0", "clock.slots=64", "clock.eta=8"),
    ],
)
def test_runs_without_a_look_ahead_or_with_slots_are_planned(overrides):
    found = launches(*overrides)
    assert found.groups >= 800
    assert found.sim_time > 0
    assert (
        f"{found.groups:,} groups for the 800"
        in plan_one(make_config("updates=100", *overrides, suite="simulated_async")).policies
    )


def test_a_learner_that_would_wait_for_ever_is_planned_as_that():
    found = plan_one(make_config("clock.timeout=1", "updates=100", suite="simulated_async"))
    assert "waits, and group after group is dropped: clock.timeout is too low" in found.policies


@pytest.mark.parametrize(
    ("jobs", "said"), [(1, "1:00 one after another"), (2, "0:30 2 at once"), (9, "0:20 3 at once")]
)
def test_runs_at_once_share_the_time_and_no_more_run_than_there_are(jobs, said):
    one = replace(plan_one(make_config("D=1", f"jobs={jobs}")), seconds=20.0, state="new")
    console = Console(record=True, width=200, file=StringIO())
    print_plan([one, one, one], console)
    assert f"3 runs, 3 to do: about {said}" in console.export_text()
