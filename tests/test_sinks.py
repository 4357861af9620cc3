"""Sinks get every row and evaluation once, whatever happens to the run; and nothing that happens to them ends it."""

import json
import math
import os
import signal

import pytest
import sink_readers
from settings import fingerprint, rows, run, small_config

from delaysim.accuracy import summarise
from delaysim.errors import UserError
from delaysim.run import runner, sinks, trackers
from delaysim.run.records import RunDir
from delaysim.run.sinks import of_evaluation, of_row
from delaysim.settings.config import SINKS

SENT = "sent.jsonl"
COLUMNS = {
    "train": {"reward_mean", "length_mean", "truncated", "mixed", "entropy", "grad_norm", "lr", "tokens"},
    "delay": {"delay_mean", "delay_p50", "delay_p95", "delay_max"},
    "ratio": {"ess", "ratio_max", "kl_pi_mu", "kept", "removed", "intervention", "second_moment", "saturated"},
    "time": {"sim_time", "wait", "wall_s", "generate_s", "train_s", "evaluate_s", "tokens_per_s"},
}


def wanted(path):
    """What a finished run's files say should have been sent: {step: {name: value}}."""
    events = [of_row(row) for row in rows(path, "updates", clocks=True)]
    events += [of_evaluation(accuracy) for accuracy in summarise(rows(path, "evals"))]
    return sink_readers.merged((event.step, event.values) for event in events)


def reproducible(steps):
    """Without what the wall clock decides."""
    return {step: {k: v for k, v in values.items() if not k.endswith("_s")} for step, values in steps.items()}


# fakes that write lines


def installed(names):
    """In place of `require`: the fakes need no package."""


def file_tracker(path, labels):
    """Appends what it is told to a file; under DIE_AT dies in place of the n-th event, RAISE_AT raises."""
    count = [0]

    def log(values, step):
        count[0] += 1
        if count[0] == int(os.environ.get("DIE_AT", "0")):
            os.kill(os.getpid(), signal.SIGKILL)
        if count[0] == int(os.environ.get("RAISE_AT", "0")):
            raise ConnectionError("no\nroute")
        with (path / SENT).open("a") as file:
            file.write(json.dumps([labels.key, step, values]) + "\n")

    return trackers.Tracker(log, lambda: None)


def sent(path):
    lines = [json.loads(line) for line in (path / SENT).read_text().splitlines()]
    assert len({line[0] for line in lines}) == 1
    return sink_readers.merged((step, values) for _, step, values in lines)


def run_with_fakes(path, environment, names=("wandb",), overrides=()):
    """In a process of its own."""
    os.environ.update(environment)
    runner.require = installed
    for name in names:
        trackers.TRACKERS[name] = file_tracker
    run(small_config("D=2", f"sinks=[{','.join(names)}]", *overrides), path)


def in_process(context, target, *arguments):
    process = context.Process(target=target, args=arguments)
    process.start()
    process.join()
    return process.exitcode


# what is sent


@pytest.fixture(scope="module")
def whole(base_cache, tmp_path_factory):
    """A run that has sinks and was never stopped."""
    path = tmp_path_factory.mktemp("whole") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "require", installed)
        patch.setitem(trackers.TRACKERS, "wandb", file_tracker)
        assert run(small_config("D=2", "sinks=[wandb]"), path).state == "done"
    return path


def test_a_sink_gets_every_row_and_every_evaluation(whole):
    assert sent(whole) == wanted(whole)
    assert sorted(sent(whole)) == list(range(9))
    assert set(sent(whole)[8]) == {"eval/pass1", "eval/se", "eval/greedy", "eval/truncated", "eval/length_mean"}
    assert json.loads((whole / "sinks.json").read_text()) == {"wandb": 16}


def test_every_column_has_its_group(whole):
    names = {name for values in sent(whole).values() for name in values}
    assert {name.split("/")[0] for name in names} == {*COLUMNS, "eval"}
    for group, columns in COLUMNS.items():
        assert names >= {f"{group}/{column}" for column in columns}
    columns = {
        column for row in rows(whole, "updates", clocks=True) for column, value in row.items() if value is not None
    }
    assert {name.split("/")[1] for name in names if not name.startswith("eval/")} == columns - {"update"}


def test_numbers_that_are_none_are_left_out():
    event = of_row({"update": 3, "ess": math.nan, "hill": None, "ratio_max": math.inf, "tokens": 7, "lr": 0.0})
    assert event == (7, 3, {"train/tokens": 7.0, "train/lr": 0.0})


def test_a_sink_changes_no_row(whole, tmp_path):
    run(small_config("D=2"), tmp_path / "run")
    assert not (tmp_path / "run/sinks.json").exists()
    assert fingerprint(tmp_path / "run") == fingerprint(whole)


# stopped, killed, begun late


@pytest.mark.slow
@pytest.mark.parametrize("at", [1, 2, 6, 7, 11])
def test_a_killed_run_sends_nothing_twice(whole, context, tmp_path, at):
    """Killed in place of an event, that one is missing; what is trained again is not sent again."""
    assert in_process(context, run_with_fakes, tmp_path / "run", {"DIE_AT": str(at)}) == -signal.SIGKILL
    in_process(context, run_with_fakes, tmp_path / "run", {})
    assert fingerprint(tmp_path / "run") == fingerprint(whole)
    got, full = reproducible(sent(tmp_path / "run")), reproducible(sent(whole))
    events = [
        (s, part) for s in sorted(full) for part in ("eval/", "train/") if any(n.startswith(part) for n in full[s])
    ]
    step, part = events[at - 1]
    missing = {n for n in full[step] if n.startswith("eval/") == (part == "eval/")}
    full[step] = {n: v for n, v in full[step].items() if n not in missing}
    assert got == {s: values for s, values in full.items() if values}


@pytest.mark.slow
def test_killed_twice_and_further_back_the_second_time(whole, context, tmp_path):
    """The first leg got to event 9, the second, from update 6 on, to update 7 without sending a thing."""
    assert in_process(context, run_with_fakes, tmp_path / "run", {"DIE_AT": "10"}) == -signal.SIGKILL
    assert in_process(context, run_with_fakes, tmp_path / "run", {"DIE_AT": "1"}) == -signal.SIGKILL
    in_process(context, run_with_fakes, tmp_path / "run", {})
    assert fingerprint(tmp_path / "run") == fingerprint(whole)
    got = reproducible(sent(tmp_path / "run"))
    assert sum(map(len, got.values())) < sum(map(len, reproducible(sent(whole)).values()))


@pytest.mark.slow
def test_a_sink_that_comes_late_gets_what_was_before(whole, tmp_path, monkeypatch):
    from stopping import stopped_and_resumed

    monkeypatch.setattr(runner, "require", installed)
    monkeypatch.setitem(trackers.TRACKERS, "wandb", file_tracker)
    config = small_config
    calls = []

    def late(*overrides):
        calls.append(overrides)
        return config(*overrides, f"sinks=[{'wandb' if len(calls) > 1 else ''}]")

    assert stopped_and_resumed(["D=2"], tmp_path / "run", monkeypatch, make=late) == fingerprint(whole)
    assert reproducible(sent(tmp_path / "run")) == reproducible(sent(whole))


# what fails


def test_a_sink_that_fails_is_left_and_the_others_go_on(whole, tmp_path, monkeypatch):
    def broken(path, labels):
        raise PermissionError("not yours")

    monkeypatch.setenv("RAISE_AT", "4")
    monkeypatch.setattr(runner, "require", installed)
    monkeypatch.setitem(trackers.TRACKERS, "wandb", file_tracker)
    monkeypatch.setitem(trackers.TRACKERS, "trackio", broken)
    counted = []
    monkeypatch.setitem(
        trackers.TRACKERS, "tensorboard", lambda path, labels: trackers.Tracker(lambda v, s: counted.append(s), list)
    )
    path = tmp_path / "run"
    assert run(small_config("D=2", "sinks=[wandb,trackio,tensorboard]"), path).state == "done"
    assert fingerprint(path) == fingerprint(whole)
    assert len((path / SENT).read_text().splitlines()) == 3
    assert sorted(counted) == sorted([*range(8), 0, 4, 8])
    warnings = [line for line in (path / "run.log").read_text().splitlines() if " failed, " in line]
    assert len(warnings) == 2
    assert "sink trackio failed, the run goes on without it: PermissionError: not yours" in warnings[0]
    assert "sink wandb failed, the run goes on without it: ConnectionError: no route" in warnings[1]


@pytest.mark.parametrize("name", SINKS)
def test_a_missing_package_is_one_line_before_anything_runs(tmp_path, monkeypatch, name):
    monkeypatch.setattr(sinks, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=rf"^sinks=\[{name}\] needs {name}: pip install 'delaysim\[{name}\]'$"):
        run(small_config("D=2", f"sinks=[{name}]"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_folder_of_a_sinks_name_is_no_package(tmp_path, monkeypatch):
    (tmp_path / "sink_folder").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UserError, match="needs sink_folder"):
        sinks.require(["sink_folder"])


def test_a_damaged_position_is_one_line(tmp_path):
    (tmp_path / "sinks.json").write_text('{"wandb": 1')
    with pytest.raises(UserError, match=r"sinks\.json is damaged .*resume=never starts the run over"):
        sinks.Sinks(None, RunDir(tmp_path), [], None)


def test_names_are_checked_and_listed():
    assert set(trackers.TRACKERS) == set(SINKS)
    with pytest.raises(UserError, match="sinks=mlflow: choose one of tensorboard, wandb, trackio"):
        small_config("D=2", "sinks=[mlflow]")
