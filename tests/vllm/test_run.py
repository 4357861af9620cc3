"""A training run with a real engine: the clock's part is that of sampler=hf, and it survives what an engine does."""

import json

import numpy as np
import pytest
from settings import fingerprint, rows, run, small_config
from stopping import stopped_and_resumed

from delaysim.policy.codec import CharacterCodec
from delaysim.policy.vllm_engine import Engine
from delaysim.ratios import read_frames
from delaysim.run import experiment
from delaysim.tasks.chain import Chain

pytestmark = pytest.mark.vllm
SHORT = ("D=3", "updates=6", "evaluation.every=3", "sampler.chunk=2", "eps=0.05")


@pytest.fixture(scope="module")
def runs(base_cache, tmp_path_factory):
    """The same settings with both samplers."""
    folder = tmp_path_factory.mktemp("runs")
    for kind in ("hf", "vllm"):
        ended = run(small_config(*SHORT, f"sampler={kind}"), folder / kind)
        assert ended.state == "done", ended.message
    return folder


def columns(path, name, *keys):
    return [tuple(row[key] for key in keys) for row in rows(path, name)]


def test_ids_prompts_versions_and_delays_are_those_of_the_other_sampler(runs):
    ours, theirs = runs / "vllm", runs / "hf"
    for name, keys in (
        ("launches", ("group", "attempt", "version")),
        ("groups", ("update", "group", "version", "delay")),
        ("updates", ("update", "delay_mean", "delay_max", "sim_time", "wait", "lr")),
        ("evals", ("update", "problem", "response", "greedy")),
    ):
        assert columns(ours, name, *keys) == columns(theirs, name, *keys)
    assert columns(ours, "launches", "rewards") != columns(theirs, "launches", "rewards"), "another sampler's noise"


def test_both_samplers_are_greedy_alike_on_the_base(runs):
    """Decided by the weights alone: the same responses, token by token."""
    evals = {
        kind: [r for r in rows(runs / kind, "evals") if r["greedy"] and r["update"] == 0] for kind in ("hf", "vllm")
    }
    assert evals["hf"] == evals["vllm"]
    assert len(evals["hf"]) == 8


def test_what_the_engine_reports_is_what_the_learner_recomputes(runs):
    updates = rows(runs / "vllm", "updates")
    assert all(0 < row["mismatch_max"] < 1e-5 for row in updates)
    assert all(0 < row["publish_gap"] < 1e-5 for row in updates)
    assert all(row["mismatch_over"] == 0 for row in updates)
    for frame in read_frames(runs / "vllm/ratios.bin"):
        assert np.abs(frame.sampler - frame.recomputed).max() < 1e-5
        stale = np.repeat(frame.delays > 0, frame.lengths.sum(1))
        assert np.array_equal(frame.behaviour[stale], frame.recomputed[stale])


def test_an_engine_on_a_second_device_leaves_the_record_of_one(runs, tmp_path):
    """The engine and the recomputed log-probabilities in the sampler's process, beside the update."""
    ended = run(small_config(*SHORT, "sampler=vllm", "devices=[cpu,cpu]"), tmp_path / "two")
    assert ended.state == "done", ended.message
    assert fingerprint(tmp_path / "two") == fingerprint(runs / "vllm")


def test_it_learns_from_its_own_versions(runs):
    """Recomputed at launch, not by later weights: a delayed group's log-ratio is not 0."""
    late = [row for row in rows(runs / "vllm", "groups") if row["delay"] == 3]
    assert late
    assert all(abs(row["kl_mu_pi_k3"]) > 1e-6 for row in late)


@pytest.mark.parametrize("update", [0, 3])
def test_stopped_and_resumed_it_gives_the_same_rows(runs, tmp_path, monkeypatch, update):
    """The new engine gets the checkpoint's weights, and requests their own seeds."""
    again = stopped_and_resumed((*SHORT, "sampler=vllm"), tmp_path / "run", monkeypatch, update)
    assert again == fingerprint(runs / "vllm")


def test_a_dead_engine_ends_the_run_with_its_state_saved(runs, tmp_path, monkeypatch):
    generate, calls = Engine.generate, iter(range(10**6))

    def dies(self, prompts, params):
        if next(calls) == 11:
            monkeypatch.setattr(self._llm.llm_engine, "step", lambda: 1 / 0)
        return generate(self, prompts, params)

    monkeypatch.setattr(Engine, "generate", dies)
    cfg = small_config(*SHORT, "sampler=vllm")
    ended = run(cfg, tmp_path / "run")
    assert (ended.state, ended.exit_code) == ("failed", 1)
    done = len(rows(tmp_path / "run", "updates"))
    assert done > 0
    assert ended.message == (
        "the vLLM engine failed while generating: ZeroDivisionError: division by zero; "
        f"the state after update {done} is saved"
    )
    monkeypatch.undo()
    assert run(cfg, tmp_path / "run").state == "done"
    assert fingerprint(tmp_path / "run") == fingerprint(runs / "vllm")


def test_an_engine_that_keeps_old_weights_ends_the_run(runs, tmp_path, monkeypatch):
    """It starts with the base, and then ignores every update."""
    publish = Engine.publish
    monkeypatch.setattr(Engine, "publish", lambda self, version: None if version else publish(self, version))
    ended = run(small_config(*SHORT, "sampler=vllm", "lr=3e-3", "learner.warmup=0"), tmp_path / "run")
    assert ended.state == "failed"
    assert "after version 1 was published the sampler's log-probabilities of a fixed batch differ" in ended.message
    assert "the state after update 1 is saved" in ended.message
    assert json.loads((tmp_path / "run/checkpoint.json").read_text())["update"] == 1


def test_prompts_travel_as_token_ids(base_cache, tmp_path, monkeypatch):
    """What the engine is asked is the codec's ids, and what it answers is what is trained on."""
    asked, generate = [], Engine.generate

    def listening(self, prompts, params):
        outputs = generate(self, prompts, params)
        asked.extend(zip(map(tuple, prompts), (tuple(o.outputs[0].token_ids) for o in outputs), strict=True))
        return outputs

    monkeypatch.setattr(Engine, "generate", listening)
    cfg = small_config("D=0", "updates=2", "evaluation.every=null", "sampler=vllm")
    groups = []
    update = experiment.Learner.update

    def watching(self, n, given):
        groups.extend(given)
        return update(self, n, given)

    monkeypatch.setattr(experiment.Learner, "update", watching)
    assert run(cfg, tmp_path).state == "done"
    for group in groups:
        prompt = tuple(CharacterCodec().encode_prompt(Chain().training(0, group.group).prompt).tolist())
        for response in group.responses:
            assert (prompt, tuple(response.tokens.tolist())) in asked
