"""Adapters reach the engine inside the weights they stand beside."""

import json
from contextlib import closing

import numpy as np
import pytest
import torch
from directories import build_model, save
from settings import fingerprint, make_config, rows, run

from delaysim.errors import SamplerFailed
from delaysim.policy.codec import CharacterCodec
from delaysim.policy.lora import add_adapters
from delaysim.policy.sample import Decoding
from delaysim.policy.sampler import Draw
from delaysim.policy.vllm_sampler import VllmSampler
from delaysim.settings.models import LoraConf
from delaysim.settings.samplers import VllmSamplerConf

pytest.importorskip("peft", reason="the extra lora is not installed")
pytestmark = pytest.mark.vllm
CODEC = CharacterCodec()
CONF = VllmSamplerConf(max_new_tokens=48)
SHAPE = {"vocab_size": CODEC.vocabulary, "hidden_size": 64, "intermediate_size": 128, "head_dim": 32}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "decoder_sparse_step": 1}
FAMILIES = {
    "tied": ("Qwen3", {"tie_word_embeddings": True, "initializer_range": 0.1}),
    "experts": ("Qwen3Moe", EXPERTS | {"tie_word_embeddings": False, "initializer_range": 0.1}),
}


def adapted(name, dtype=torch.float32):
    family, settings = FAMILIES[name]
    model = build_model(family, **SHAPE | settings).eval().to(dtype)
    add_adapters(model, LoraConf(alpha=8), 4, 0)
    return model


def move(model):
    """What training moves: the adapters alone."""
    rng = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(0.05 * torch.randn(parameter.shape, generator=rng))


def draw(sampler):
    prompts = [CODEC.encode_prompt(text) for text in ("1+2+3=", "9+9=")]
    keys = [(b, 0, i) for b in range(2) for i in range(4)]
    return sampler.sample(prompts, 4, Decoding(8, 1.0, frozenset()), Draw(0, "test", keys))


@pytest.mark.parametrize("name", FAMILIES)
def test_adapters_are_published_within_rounding(name):
    """Before the first step they change nothing; after one the engine's log-probabilities follow at the publish."""
    model = adapted(name)
    with closing(VllmSampler(model, CODEC, CONF)) as sampler:
        assert sampler.gap < 1e-5
        before = draw(sampler)
        move(model)
        assert sampler._differences().max() > 1e-2
        sampler.publish(1)
        assert sampler.gap < 1e-5
        after = draw(sampler)
    first = [np.abs(a.logp[:1] - b.logp[:1]) for a, b in zip(after, before, strict=True) if a.tokens[0] == b.tokens[0]]
    assert max(first) > 1e-3


def test_frozen_bfloat16_weights_with_float32_adapters():
    """The preset of 8B: the merged weights are rounded, the learner's product is not."""
    model = adapted("tied", torch.bfloat16)
    with closing(VllmSampler(model, CODEC, CONF)) as sampler:
        move(model)
        stale = sampler._differences().max()
        sampler.publish(1)
        assert sampler.gap < 0.2
        assert sampler.gap < stale / 2


def test_adapters_that_are_not_published_are_found_out(monkeypatch):
    """An engine that is given the base alone."""
    monkeypatch.setattr("delaysim.policy.published.merger", lambda model: lambda weight: weight)
    model = adapted("tied")
    with closing(VllmSampler(model, CODEC, CONF)) as sampler:
        move(model)
        with pytest.raises(SamplerFailed, match=r"after version 1 .* differ from the learner's by [\d.]+ nats"):
            sampler.publish(1)


def test_a_run_with_adapters_is_the_same_on_two_devices(tmp_path):
    conf = save(tmp_path / "model", build_model(head_dim=32, num_hidden_layers=1))
    problems = tmp_path / "problems.jsonl"
    problems.write_text("".join(json.dumps({"problem": f"a{'b' * i}", "answer": str(i)}) + "\n" for i in range(12)))
    given = (
        "model=pretrained", f"model.path={conf.path}", "model.lora.rank=4", "task=gsm8k", f"task.path={problems}",
        "task.instruction=''", "D=1", "B=2", "G=2", "updates=4", "sampler=vllm", "sampler.max_new_tokens=8",
        "lr=1e-2", "learner.warmup=0", "evaluation.problems=2", "evaluation.every=null",
        "learner.advantage=signed_reward",
    )  # fmt: skip
    for name, devices in (("one", "[cpu]"), ("two", "[cpu,cpu]")):
        ended = run(make_config(*given, f"devices={devices}"), tmp_path / name)
        assert ended.state == "done", ended.message
    assert fingerprint(tmp_path / "one") == fingerprint(tmp_path / "two")
    updates = rows(tmp_path / "one", "updates")
    assert all(0 < row["publish_gap"] < 1e-5 for row in updates)
    late = [row for row in rows(tmp_path / "one", "groups") if row["delay"] == 1]
    assert all(abs(row["kl_mu_pi_k3"]) > 1e-6 for row in late)
