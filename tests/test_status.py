"""`delaysim status` over directories made by hand: states, sweeps, time left, a screen's width and height."""

import fcntl
import io
import json
import os
import platform
import re
import time

import pytest
from rich.console import Console

from delaysim.cli.status import page
from delaysim.run.overview import overview


def make_run(path, state="done", update=100, age_s=0.0, **values):
    path.mkdir(parents=True)
    fields = {"state": state, "update": update, "updates": 100, "host": platform.node(), "pass1": 0.5, **values}
    (path / "status.json").write_text(json.dumps(fields))
    then = time.time() - age_s
    os.utime(path / "status.json", (then, then))


def make_plan(root, runs, age_s):
    folder = root / "sweeps"
    folder.mkdir(parents=True)
    plan = folder / "fixed_delay_table-0.json"
    plan.write_text(json.dumps({"name": "fixed_delay_table", "command": "delaysim", "runs": runs}))
    os.utime(plan, (time.time() - age_s,) * 2)
    return (folder / "fixed_delay_table-0.lock").open("a")


def shown(root, height=None):
    console = Console(file=io.StringIO(), width=80, highlight=False)
    console.print(page(root, overview(root), height))
    return console.file.getvalue().splitlines()


@pytest.fixture
def holding():
    """Hold locks as running processes do."""
    files = []

    def hold(path):
        files.append(path.open("a"))
        fcntl.flock(files[-1], fcntl.LOCK_EX)

    yield hold
    for file in files:
        file.close()


def test_running_is_killed_without_its_lock_unless_another_machine_gives_a_sign_of_life(tmp_path, holding):
    make_run(tmp_path / "s/held", "running")
    holding(tmp_path / "s/held/lock")
    make_run(tmp_path / "s/free", "running")
    make_run(tmp_path / "s/far", "running", host="elsewhere", age_s=20)
    make_run(tmp_path / "s/silent", "running", host="elsewhere", age_s=200)
    states = {path.name: run.state for path, run in overview(tmp_path).runs.items()}
    assert states == {"held": "running", "free": "killed", "far": "running", "silent": "killed"}


@pytest.mark.parametrize(("left_s", "left"), [(None, 60 * 250 / 350), (10, 60 * 250 / 350), (5, 25.0)])
def test_a_sweep_counts_what_it_plans_and_tells_the_time_left_at_its_pace(tmp_path, holding, left_s, left):
    """Since the start 60 s ago: one run of 300 done, half of another; 50 and 200 are left: 250/350 of 60 s.

    The one that runs has 50 to do: in 5 s it does 10 a second, which is faster, in 10 s 5, which is not.
    """
    work = {"s/before": 500, "s/done": 300, "s/half": 100, "s/new": 200}
    make_plan(tmp_path, work, age_s=60).close()
    holding(tmp_path / "sweeps/fixed_delay_table-0.lock")
    make_run(tmp_path / "s/before", age_s=1000)
    make_run(tmp_path / "s/done")
    make_run(tmp_path / "s/half", "running", update=50, left_s=left_s)
    holding(tmp_path / "s/half/lock")
    make_run(tmp_path / "s/of_no_sweep", "failed", error="no")
    (sweep,) = overview(tmp_path).sweeps
    assert sweep.left_s == pytest.approx(left, rel=0.02)
    lines = shown(tmp_path)
    assert lines[0] == f"{tmp_path.name}: 4 runs, 2 done, 1 running, 1 failed"
    assert lines[-1] == "failed of_no_sweep: no"
    assert lines[1] == f"sweep fixed_delay_table: 2 of 4 done, 1 running, 1 waiting; 0:{left:.0f} left"


def test_an_abandoned_sweep_says_so_and_is_not_watched(tmp_path):
    make_plan(tmp_path, {"s/a": 1, "s/b": 1}, age_s=10).close()
    make_run(tmp_path / "s/a")
    assert not overview(tmp_path).active
    assert "sweep fixed_delay_table: 1 of 2 done, 1 waiting; not under way" in shown(tmp_path)
    assert "sweep fixed_delay_table: 1 of 2 done, 1 waiting; not under way" in shown(tmp_path / "s")


def test_a_watched_screen_shows_first_what_asks_for_attention_and_counts_the_rest(tmp_path, holding):
    for number in range(250):
        make_run(tmp_path / f"fixed_delay/grpo-D128-eps0.2-G8-tiny-chain-s{number}-85d48960")
    bad = tmp_path / "fixed_delay/gmc-D128-eps0.28-G8-tiny-chain-s10-85d48960"
    make_run(bad, "failed", update=7, error="update 7: a gradient is not finite " + "x" * 60)
    live = tmp_path / "fixed_delay/tic-D128-eps0.28-G8-tiny-chain-s10-85d48960"
    make_run(live, "running", update=7, left_s=3700)
    holding(live / "lock")
    lines = shown(tmp_path, height=24)
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert re.match(r"tic-D128\S+\s+running\s+7/100\s+0.500\s+1:01:40", lines[3])
    assert lines[4].startswith("gmc-D128")
    left = int(re.fullmatch(r"and (\d+) done more", lines[-1])[1])
    assert left == 250 - sum("done" in line for line in lines[3:-1])
    assert len(shown(tmp_path)) > 252


def test_what_lies_within_a_run_is_no_run(tmp_path):
    make_run(tmp_path / "s/run")
    make_run(tmp_path / "s/run/checkpoints/of_another")
    assert [path.name for path in overview(tmp_path).runs] == ["run"]
    assert [path.name for path in overview(tmp_path / "s/run").runs] == ["run"]
