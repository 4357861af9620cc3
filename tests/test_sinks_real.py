"""The trackers themselves: a run killed between two checkpoints and gone on with, read back by each one's reader."""

import os
import re
import signal
import socket
import time

import pytest
import sink_readers
from settings import rows, run, small_config
from test_sinks import in_process, reproducible, wanted

from delaysim.run import experiment
from delaysim.run.sinks import require
from delaysim.settings.config import SINKS

pytestmark = pytest.mark.slow
LOCAL = re.compile(r"127\.0\.0\.1|localhost|^/|^b?'?/")
NAMED = [pytest.param(name, marks=pytest.mark.filterwarnings("ignore::DeprecationWarning")) for name in SINKS]


def small_run(path, sink, calls, die_after=None, *overrides):
    """In a process of its own; `calls` gets every address that is looked up or connected to."""
    os.environ.update(TRACKIO_DIR=str(path.parent / "trackio"), WANDB_MODE="offline", HF_TOKEN="hf_made_up")
    connect, look_up = socket.socket.connect, socket.getaddrinfo
    socket.socket.connect = lambda self, address: (note(calls, address), connect(self, address))[1]
    socket.getaddrinfo = lambda *arguments, **keywords: (note(calls, arguments), look_up(*arguments, **keywords))[1]
    train = experiment.Experiment._train

    def train_then_die(self, asked, *meanwhile):
        train(self, asked, *meanwhile)
        if asked.update == die_after:
            time.sleep(2)  # trackio and W&B write behind the run's back
            os.kill(os.getpid(), signal.SIGKILL)

    experiment.Experiment._train = train_then_die
    run(small_config("D=2", f"sinks=[{sink}]", *overrides), path)


def note(calls, address):
    with calls.open("a") as file:
        file.write(f"{address}\n")


def read(sink, path):
    """What a tracker has of the one run."""
    if sink != "trackio":
        return getattr(sink_readers, sink)(path)
    (steps,) = sink_readers.trackio(path.parent / "trackio").values()
    return steps


@pytest.fixture(params=NAMED)
def sink(request):
    pytest.importorskip(request.param)
    return request.param


def test_a_killed_run_in_every_tracker(sink, base_cache, context, tmp_path):
    """Updates 3 and 4 are trained twice and are there once."""
    path, calls = tmp_path / "run", tmp_path / "calls"
    calls.touch()
    assert in_process(context, small_run, path, sink, calls, 4) == -signal.SIGKILL
    assert len(rows(path, "updates")) == 5
    assert in_process(context, small_run, path, sink, calls) == 0
    got, full = reproducible(read(sink, path)), reproducible(wanted(path))
    if sink == "wandb":  # it writes a step when the next one begins
        assert 4 not in got
        del full[4]
    assert got == {step: pytest.approx(values, rel=1e-6) for step, values in full.items()}
    assert not [address for address in calls.read_text().splitlines() if not LOCAL.search(address)]


def test_a_run_started_over_is_another_run(sink, base_cache, context, tmp_path):
    path, calls = tmp_path / "run", tmp_path / "calls"
    in_process(context, small_run, path, sink, calls, 4)
    in_process(context, small_run, path, sink, calls, None, "resume=never")
    full = reproducible(wanted(path))
    if sink == "trackio":
        first, second = sink_readers.trackio(tmp_path / "trackio").values()
        assert set(first) <= set(range(5))
    else:
        second = read(sink, path)
    assert {step: pytest.approx(values, rel=1e-6) for step, values in full.items()} == reproducible(second)


def test_installed_packages_are_found(sink):
    require([sink])
