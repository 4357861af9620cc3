"""Ctrl-C and SIGTERM as they arrive: the run ends at a safe point with its state saved, a second Ctrl-C at once."""

import json
import os
import signal

import pytest
from settings import fingerprint, rows, run, small_config

from delaysim.run import evaluate, rollouts
from delaysim.run.records import FILES
from delaysim.train import scoring

PLACES = {"generation": (rollouts, "Draw"), "update": (scoring, "score_packs"), "evaluation": (evaluate, "Draw")}


@pytest.fixture(scope="module")
def whole(base_cache, tmp_path_factory):
    """An uninterrupted run."""
    path = tmp_path_factory.mktemp("whole") / "run"
    assert run(small_config("D=3"), path).state == "done"
    return fingerprint(path)


def signal_in(monkeypatch, place, count, *signals):
    """Send the signals to this process inside the `count`-th call made at a place."""
    module, name = PLACES[place]
    original, calls = getattr(module, name), [0]

    def interrupted(*arguments, **keywords):
        calls[0] += 1
        if calls[0] == count:
            for number in signals:
                os.kill(os.getpid(), number)
        return original(*arguments, **keywords)

    monkeypatch.setattr(module, name, interrupted)


@pytest.mark.parametrize(
    ("place", "count", "number", "message"),
    [
        ("generation", 1, signal.SIGINT, "stopped while generating for update 0, state saved"),
        ("generation", 6, signal.SIGTERM, "stopped while generating for update 0, state saved"),
        ("generation", 9, signal.SIGINT, "stopped while generating for update 1, state saved"),
        ("update", 5, signal.SIGINT, "stopped after update 5 of 8, state saved"),
        ("evaluation", 2, signal.SIGTERM, "stopped after update 4 of 8, state saved"),
    ],
)
@pytest.mark.slow
def test_one_signal_stops_at_the_next_safe_point(whole, tmp_path, monkeypatch, place, count, number, message):
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    signal_in(monkeypatch, place, count, number)
    ended = run(small_config("D=3"), tmp_path)
    assert (ended.state, ended.exit_code, ended.message) == ("interrupted", 130, message)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    status = json.loads((tmp_path / "status.json").read_text())
    assert (status["state"], status["error"]) == ("interrupted", message)
    pointer = json.loads((tmp_path / "checkpoint.json").read_text())
    assert all((tmp_path / FILES[name]).stat().st_size == size for name, size in pointer["sizes"].items())
    monkeypatch.undo()
    assert run(small_config("D=3", "resume=must"), tmp_path).state == "done"
    assert fingerprint(tmp_path) == whole


@pytest.mark.parametrize(("place", "count"), [("generation", 4), ("update", 6), ("evaluation", 1)])
@pytest.mark.slow
def test_a_second_signal_stops_at_once_and_goes_on_from_the_last_checkpoint(whole, tmp_path, monkeypatch, place, count):
    signal_in(monkeypatch, place, count, signal.SIGINT, signal.SIGINT)
    ended = run(small_config("D=3"), tmp_path)
    assert (ended.state, ended.exit_code) == ("interrupted", 130)
    assert "goes on from its last checkpoint" in ended.message
    assert len(rows(tmp_path, "updates")) == (5 if place == "update" else 0)
    monkeypatch.undo()
    assert run(small_config("D=3"), tmp_path).state == "done"
    assert fingerprint(tmp_path) == whole


def test_a_signal_in_the_last_update_is_too_late_to_interrupt(whole, tmp_path, monkeypatch):
    signal_in(monkeypatch, "update", 8, signal.SIGINT)
    assert run(small_config("D=3"), tmp_path).state == "done"
    assert fingerprint(tmp_path) == whole


@pytest.mark.slow
def test_interrupting_again_and_again_changes_nothing(whole, tmp_path, monkeypatch):
    """Stopped in every update and while generating in between."""
    states = []
    while not states or states[-1] == "interrupted":
        signal_in(monkeypatch, "update" if len(states) % 2 else "generation", 1, signal.SIGINT)
        states.append(run(small_config("D=3"), tmp_path).state)
        monkeypatch.undo()
    assert states.count("interrupted") >= 8
    assert fingerprint(tmp_path) == whole


def test_a_run_killed_before_its_first_status_can_still_be_resumed(whole, tmp_path, monkeypatch):
    signal_in(monkeypatch, "update", 5, signal.SIGINT)
    run(small_config("D=3"), tmp_path)
    monkeypatch.undo()
    (tmp_path / "status.json").unlink()
    assert run(small_config("D=3", "resume=must"), tmp_path).state == "done"
    assert fingerprint(tmp_path) == whole


def test_a_checkpoint_that_is_gone_fails_in_one_line_and_is_not_papered_over(base_cache, tmp_path, monkeypatch):
    signal_in(monkeypatch, "update", 5, signal.SIGINT)
    run(small_config("D=3"), tmp_path)
    monkeypatch.undo()
    waiting = sorted((tmp_path / "pending").iterdir())
    kept = waiting[0].read_bytes()
    waiting[0].unlink()
    ended = run(small_config("D=3"), tmp_path)
    group = int(waiting[0].stem)
    assert (ended.state, ended.exit_code) == ("failed", 1)
    assert ended.message == f"{tmp_path}/pending lacks group {group}: resume=never starts over"
    waiting[0].write_bytes(kept)
    (weights,) = tmp_path.glob("checkpoints/*/optimiser.safetensors")
    weights.write_bytes(weights.read_bytes()[:100])
    ended = run(small_config("D=3"), tmp_path)
    assert (ended.state, ended.exit_code) == ("failed", 1)
    assert "cannot be read" in ended.message
    assert "\n" not in ended.message
