"""The clock's policies in training: what a run does is what the clock alone says, and it survives being stopped."""

import hashlib

import numpy as np
import pyarrow.parquet as pq
import pytest
from policies import POLICIES, clock_alone, config
from settings import fingerprint, rows, run

from delaysim.clock.ledger import FATES
from delaysim.clock.trace import group_rows
from delaysim.policy.sampler import HfSampler
from delaysim.run import experiment
from delaysim.train.learner import Learner

QUICK = "all"
ALL = [name if name == QUICK else pytest.param(name, marks=pytest.mark.slow) for name in POLICIES]
FATES_SEEN = {
    "queue": "queue", "age": "age", "aborted": "aborted", "timeout": "timeout", "flat": "filtered",
    "slots": "timeout", "all": "aborted",
}  # fmt: skip


@pytest.fixture(scope="module")
def whole(base_cache, tmp_path_factory):
    """Uninterrupted runs, each made once."""
    made = {}

    def get(name):
        if name not in made:
            made[name] = tmp_path_factory.mktemp(name) / "run"
            assert run(config(name), made[name]).state == "done"
        return made[name]

    return get


@pytest.mark.parametrize("name", ALL)
def test_a_run_does_what_the_clock_alone_says(whole, name):
    path = whole(name)
    clock, steps = clock_alone(path)
    launched = [step.launch for step in steps if step.launch is not None]
    asked = [
        (group, prompt, attempt, launch.version)
        for launch in launched
        for group, prompt, attempt in zip(launch.groups, launch.prompts, launch.attempts, strict=True)
    ]
    made = rows(path, "launches")
    assert [(r["group"], r.get("prompt", r["group"]), r["attempt"], r["version"]) for r in made] == asked
    trained = [step.train for step in steps if step.train is not None]
    consumed = [(t.update, g, g in t.replayed) for t in trained for g in (*t.groups, *t.replayed)]
    found = rows(path, "groups")
    assert [(r["update"], r["group"], r.get("replayed", False)) for r in found] == consumed
    version = {group: version for group, _, _, version in asked}
    assert [(r["version"], r["delay"]) for r in found] == [(version[g], n - version[g]) for n, g, _ in consumed]
    assert [r["sim_time"] for r in rows(path, "updates")] == [t.publish / 1e6 for t in trained]
    trace, wanted = pq.read_table(path / "trace.parquet"), group_rows(clock.ledger)
    assert trace["fate"].to_pylist() == [FATES[fate] for fate in wanted["fate"]]
    for column in ("group", "prompt", "attempt", "version", "launch"):
        assert np.array_equal(trace[column].to_numpy(), wanted[column])
    assert FATES_SEEN.get(name, "trained") in trace["fate"].to_pylist(), "the policy does nothing here"
    assert any(r["attempt"] for r in made) == clock.law.requeue
    assert any(replayed for _, _, replayed in consumed) == bool(clock.law.replay)


def digest(model):
    """Of a model's weights."""
    return hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["every", "background"])
def test_a_group_is_generated_with_the_weights_of_its_version(base_cache, tmp_path, monkeypatch, name):
    """Also where they are not the learner's any more; evaluations are always the learner's."""
    after, drawn, start, sample, update = [], [], HfSampler.start, HfSampler.sample, Learner.update

    def watched_start(self, prompts, repeat, decoding, draw):
        drawn.append(digest(self._model))
        return start(self, prompts, repeat, decoding, draw)

    def watched_update(self, n, groups):
        after[n:] = [digest(self.model)]
        outcome = update(self, n, groups)
        after.append(digest(self.model))
        return outcome

    def watched_sample(self, prompts, repeat, decoding, draw):
        if draw is None:
            evaluated.append(digest(self._model))
        return sample(self, prompts, repeat, decoding, draw)

    evaluated = []
    monkeypatch.setattr(HfSampler, "start", watched_start)
    monkeypatch.setattr(HfSampler, "sample", watched_sample)
    monkeypatch.setattr(Learner, "update", watched_update)
    cfg = config(name, "sampler.chunk=1")
    assert run(cfg, tmp_path).state == "done"
    launches = rows(tmp_path, "launches")
    assert len(drawn) == len(launches)
    assert drawn == [after[r["version"]] for r in launches]
    assert evaluated == [after[n] for n in dict.fromkeys(r["update"] for r in rows(tmp_path, "evals"))]
    assert len(set(after)) == len(after)


def stopped_and_resumed(name, path, monkeypatch, stop):
    with monkeypatch.context() as patch:
        stop(patch)
        assert run(config(name), path).state == "interrupted"
    assert run(config(name, "resume=must"), path).state == "done"
    return fingerprint(path)


def after_update(n):
    def stop(patch):
        train = experiment.Experiment._train

        def stop_then_train(self, asked, *meanwhile):
            self.stopping = asked.update == n
            train(self, asked, *meanwhile)

        patch.setattr(experiment.Experiment, "_train", stop_then_train)

    return stop


def after_launches(count):
    def stop(patch):
        between = experiment.Experiment._between_chunks

        def stop_between(self):
            self.stopping = self.stopping or len(self.run.rows("launches")) >= count
            between(self)

        patch.setattr(experiment.Experiment, "_between_chunks", stop_between)

    return stop


STOPS = {"update 1": after_update(1), "update 8": after_update(8), "launch 14": after_launches(14)}
TRIED = [pytest.param(name, where, marks=pytest.mark.slow) for name in POLICIES for where in STOPS]


@pytest.mark.parametrize(("name", "where"), TRIED)
def test_a_run_that_was_stopped_goes_on_as_if_it_had_not(whole, tmp_path, monkeypatch, name, where):
    found = stopped_and_resumed(name, tmp_path / "run", monkeypatch, STOPS[where])
    assert found == fingerprint(whole(name))
    pending = [sorted(file.name for file in (path / "pending").iterdir()) for path in (tmp_path / "run", whole(name))]
    assert pending[0] == pending[1]
