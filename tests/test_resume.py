"""Interrupted, resumed, skipped, refused: what a run directory goes through."""

import json

import pytest
from settings import fingerprint, rows, run, small_config

from delaysim.errors import RunFailed, UserError
from delaysim.run import experiment
from delaysim.run.checkpoint import Checkpoints
from delaysim.run.records import RunDir


@pytest.fixture(scope="module")
def whole(base_cache, tmp_path_factory):
    """An uninterrupted run."""
    path = tmp_path_factory.mktemp("whole") / "run"
    assert run(small_config("D=3"), path).state == "done"
    return fingerprint(path)


@pytest.mark.parametrize("update", [2, *(pytest.param(update, marks=pytest.mark.slow) for update in (0, 5, 6))])
def test_a_run_stopped_at_an_update_goes_on_as_if_it_had_not(whole, tmp_path, monkeypatch, update):
    train = experiment.Experiment._train

    def stop_then_train(self, asked, *meanwhile):
        self.stopping = asked.update == update
        train(self, asked, *meanwhile)

    monkeypatch.setattr(experiment.Experiment, "_train", stop_then_train)
    ended = run(small_config("D=3"), tmp_path / "run")
    assert (ended.state, ended.exit_code) == ("interrupted", 130)
    assert f"stopped after update {update + 1} of 8, state saved" in ended.message
    monkeypatch.undo()
    assert run(small_config("D=3", "resume=must"), tmp_path / "run").state == "done"
    assert fingerprint(tmp_path / "run") == whole
    legs = json.loads((tmp_path / "run/manifest.json").read_text())["legs"]
    assert [leg["from_update"] for leg in legs] == [0, update + 1]


@pytest.mark.slow
@pytest.mark.parametrize("update", [4, 8])
def test_a_run_that_dies_before_it_removes_a_superseded_checkpoint_removes_it_later(
    whole, tmp_path, monkeypatch, update
):
    forget = Checkpoints.forget_others

    def die(self, pointer):
        if pointer.update == update:
            raise RunFailed("gone")
        forget(self, pointer)

    monkeypatch.setattr(Checkpoints, "forget_others", die)
    assert run(small_config("D=3", "checkpoint.every=2"), tmp_path / "run").state == "failed"
    assert len(list((tmp_path / "run/checkpoints").iterdir())) == 2
    monkeypatch.undo()
    assert run(small_config("D=3", "checkpoint.every=2", "resume=must"), tmp_path / "run").state == "done"
    assert fingerprint(tmp_path / "run") == whole


def test_a_run_stopped_while_generating_keeps_its_chunks(whole, tmp_path, monkeypatch):
    between = experiment.Experiment._between_chunks

    def stop(self):
        self.stopping = len(self.run.rows("launches")) == 5
        between(self)

    monkeypatch.setattr(experiment.Experiment, "_between_chunks", stop)
    assert run(small_config("D=3"), tmp_path / "run").state == "interrupted"
    monkeypatch.undo()
    assert len(rows(tmp_path / "run", "launches")) == 5
    assert run(small_config("D=3"), tmp_path / "run").state == "done"
    assert fingerprint(tmp_path / "run") == whole


def test_a_finished_run_is_not_run_again(whole, tmp_path, monkeypatch):
    run(small_config("D=3"), tmp_path / "run")
    assert run(small_config("D=3"), tmp_path / "run").state == "skipped"
    assert run(small_config("D=3", "resume=never"), tmp_path / "run").state == "done"
    assert fingerprint(tmp_path / "run") == whole
    assert len(json.loads((tmp_path / "run/manifest.json").read_text())["legs"]) == 1


def test_nothing_to_resume_is_refused_and_leaves_nothing(base_cache, tmp_path):
    with pytest.raises(UserError, match="resume=auto starts one"):
        run(small_config("resume=must"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_second_writer_is_refused(base_cache, tmp_path):
    holder = RunDir(tmp_path / "run")
    holder.acquire()
    with pytest.raises(UserError, match="another process is running"):
        run(small_config(), tmp_path / "run")
    holder.release()


def test_another_schema_is_refused(whole, base_cache, tmp_path):
    run(small_config("updates=1"), tmp_path / "run")
    manifest = tmp_path / "run/manifest.json"
    manifest.write_text(manifest.read_text().replace('"schema": 2', '"schema": 99'))
    with pytest.raises(UserError, match="schema 99, this delaysim writes 2"):
        run(small_config("updates=1"), tmp_path / "run")


@pytest.mark.slow
def test_a_reward_that_is_not_finite_fails_the_run_and_names_the_group(base_cache, tmp_path, monkeypatch):
    from delaysim.tasks.base import Grade
    from delaysim.tasks.chain import Chain

    grade = Chain.grade

    def broken(self, problem, response, finished):
        return Grade(False, float("nan")) if problem.id == "chain/train/9" else grade(self, problem, response, finished)

    monkeypatch.setattr(Chain, "grade", broken)
    ended = run(small_config("D=1"), tmp_path / "run")
    assert (ended.state, ended.exit_code) == ("failed", 1)
    assert "group 9 (chain/train/9, generated at update 3)" in ended.message
    monkeypatch.undo()
    assert run(small_config("D=1"), tmp_path / "run").state == "done"
    assert run(small_config("D=1"), tmp_path / "other").state == "done"
    assert fingerprint(tmp_path / "run") == fingerprint(tmp_path / "other")


@pytest.mark.slow
def test_a_run_that_blows_up_is_collapsed_not_failed(base_cache, tmp_path):
    ended = run(small_config("D=3", "lr=1e18", "learner.warmup=0", "learner.clip=1e30"), tmp_path / "run")
    assert (ended.state, ended.exit_code) == ("collapsed", 0)
    assert "update" in ended.message
    assert (
        run(small_config("D=3", "lr=1e18", "learner.warmup=0", "learner.clip=1e30"), tmp_path / "run").state
        == "skipped"
    )
