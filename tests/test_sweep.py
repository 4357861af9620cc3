"""Cells of a sweep: they end with their command line, their memory comes back, one failure hides no other."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from settings import fingerprint, run, small_config

from delaysim.run.cells import run_cell

LONG = ("+suite=fixed_delay", "D=1", "updates=100000", "model.sft_steps=20", "evaluation.problems=4", "B=2", "G=2")


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(condition, seconds=60):
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


def test_a_cell_is_the_same_run_as_one_started_alone(base_cache, tmp_path):
    ended = run_cell(small_config("D=2"), tmp_path / "cell")
    assert (ended.state, ended.exit_code) == ("done", 0)
    run(small_config("D=2"), tmp_path / "alone")
    assert fingerprint(tmp_path / "cell") == fingerprint(tmp_path / "alone")
    pid = json.loads((tmp_path / "cell/status.json").read_text())["pid"]
    assert pid != os.getpid()
    wait_for(lambda: not alive(pid))
