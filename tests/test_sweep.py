"""Cells of a sweep: they end with their command line, their memory comes back, one failure hides no other."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from settings import fingerprint, run, small_config

from delaysim.errors import UserError
from delaysim.run.cells import Cell, run_cell, run_cells
from delaysim.run.overview import overview
from delaysim.run.progress import Display
from delaysim.run.records import RunDir
from delaysim.run.runner import train

LONG = ("+suite=fixed_delay", "D=1", "updates=100000", "model.sft_steps=20", "evaluation.problems=4", "B=2", "G=2")


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(condition, seconds=180):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_cell_ends_with_the_command_line_that_started_it(base_cache, tmp_path, how):
    words = [sys.executable, "-m", "delaysim", "-m", *LONG, "seed=0,1"]
    sweep = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL, start_new_session=True)

    def training():
        found = list(tmp_path.glob("runs/*/*/updates.jsonl"))
        return bool(found) and found[0].stat().st_size > 0

    wait_for(training)
    (status,) = tmp_path.glob("runs/*/*/status.json")
    cell = json.loads(status.read_text())["pid"]
    assert alive(cell)
    assert cell != sweep.pid
    os.kill(sweep.pid, how)
    sweep.wait()
    wait_for(lambda: not alive(cell))
    assert json.loads(status.read_text())["state"] == "interrupted"


@pytest.mark.slow
def test_ctrl_c_saves_the_run_and_exits_130(base_cache, tmp_path):
    run = subprocess.Popen(
        [sys.executable, "-m", "delaysim", *LONG],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    wait_for(lambda: any(p.stat().st_size for p in tmp_path.glob("runs/*/*/updates.jsonl")))
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "state saved" in said
    (path,) = tmp_path.glob("runs/*/*")
    assert json.loads((path / "status.json").read_text())["state"] == "interrupted"
    saved = json.loads((path / "checkpoint.json").read_text())
    assert saved["update"] == sum(1 for _ in (path / "updates.jsonl").open())


def cells(path, *delays, **last):
    configs = {delay: small_config(f"D={delay}", *last.get("words", ())) for delay in delays}
    return [Cell(f"D={delay}", cfg, path / f"D{delay}") for delay, cfg in configs.items()]


@pytest.mark.slow
def test_cells_side_by_side_are_the_runs_they_are_alone(base_cache, tmp_path):
    told = {}
    run_cells(cells(tmp_path, 2, 0, 1), 2, told.__setitem__)
    assert {number: answer.state for number, answer in told.items()} == {0: "done", 1: "done", 2: "done"}
    run(small_config("D=2"), tmp_path / "alone")
    assert fingerprint(tmp_path / "D2") == fingerprint(tmp_path / "alone")
    pids = {json.loads(path.read_text())["pid"] for path in tmp_path.glob("D*/status.json")}
    assert len(pids - {os.getpid()}) == 3
    wait_for(lambda: not any(map(alive, pids)))


def test_a_killed_cell_is_a_failure_and_the_others_go_on(base_cache, tmp_path):
    """Its lock goes with it, so that the same command resumes it."""

    def kill_the_first():
        wait_for((tmp_path / "D1/status.json").exists)
        os.kill(json.loads((tmp_path / "D1/status.json").read_text())["pid"], signal.SIGKILL)

    told = {}
    killer = threading.Thread(target=kill_the_first)
    killer.start()
    run_cells([*cells(tmp_path, 1, words=["updates=200"]), *cells(tmp_path, 0)], 2, told.__setitem__)
    killer.join()
    assert (told[0].state, told[0].message) == ("failed", "its process ended with code -9")
    assert told[1].state == "done"
    assert find_state(tmp_path, "D1") == "killed"


def find_state(root, name):
    return overview(root).runs[root / name].state


@pytest.mark.slow
def test_a_cell_waits_for_a_run_whose_process_is_about_to_end(base_cache, tmp_path):
    """As one does that a launcher started again elsewhere while the first is still saving its state."""
    holder = RunDir(tmp_path / "D0")
    holder.acquire()
    threading.Timer(1.0, holder.release).start()
    assert run_cell(small_config("D=0"), tmp_path / "D0").state == "done"
    holder.acquire()
    with pytest.raises(UserError, match="another process is running"):
        train(small_config("D=0"), tmp_path / "D0", Display("quiet"), 0.2)
    holder.release()


@pytest.mark.slow
def test_ctrl_c_stops_every_cell_with_its_state_saved_and_the_same_command_goes_on(base_cache, tmp_path):
    words = [sys.executable, "-m", "delaysim", "-m", *LONG, "seed=0,1,2", "jobs=2"]
    sweep = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: sum(p.stat().st_size > 0 for p in tmp_path.glob("runs/*/*/updates.jsonl")) == 2)
    sweep.send_signal(signal.SIGINT)
    said, errors = sweep.communicate(timeout=180)
    assert sweep.returncode == 130
    assert "3 cells: 2 interrupted, 1 not started" in said
    assert "the same command goes on" in errors
    states = [run.state for run in overview(tmp_path / "runs").runs.values()]
    assert states == ["interrupted"] * 2
    (plan,) = overview(tmp_path / "runs").sweeps
    assert (plan.alive, plan.counts["waiting"]) == (False, 1)


@pytest.mark.slow
def test_failed_cells_are_listed_last_with_the_end_of_their_logs(base_cache, tmp_path):
    (tmp_path / "boom.py").write_text("def coefficients(batch, params):\n    raise ValueError('a bug of mine')\n")
    words = ["estimator=custom", "estimator.path=boom.py", "seed=0,-1,0", "updates=2"]
    done = subprocess.run(
        [sys.executable, "-m", "delaysim", "-m", *LONG, *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    end = lines[lines.index("2 cells: 1 failed, 1 not run") :]
    assert end[1].startswith("failed: runs/fixed_delay/boom-D1-")
    assert end[-2] == "    ValueError: a bug of mine"
    assert end[-1] == "not run: seed=-1: seed=-1: give 0 or more"
    assert "1 of 3 cells are the same run as another and run once" in lines
