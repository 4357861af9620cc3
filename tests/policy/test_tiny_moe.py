"""A mixture of experts where the dense tiny model stands: taught, sampled, trained and resumed alike."""

import numpy as np
import pytest
import torch
from learners import CODEC, gradient_of, make, stale_groups
from settings import rows, small_config
from stopping import finished, stopped_and_resumed
from transformers import Qwen3MoeForCausalLM

from delaysim.policy.layout import Row
from delaysim.policy.noise import GumbelNoise
from delaysim.policy.sample import Decoding, sample
from delaysim.policy.score import score
from delaysim.policy.tiny import build_config, demonstrations, load_tiny
from delaysim.settings.models import TinyMoeConf
from delaysim.tasks.chain import Chain

SHORT = TinyMoeConf(sft_steps=60)
RUN = ("model=tiny_moe", "D=2", "updates=6")


@pytest.fixture(scope="module")
def model(base_cache):
    torch.set_num_threads(1)
    return load_tiny(SHORT, Chain(), lambda *_: None).eval()


def test_the_architecture_is_qwen3_moe_with_heads_of_32(model):
    assert isinstance(model, Qwen3MoeForCausalLM)
    config = build_config(SHORT)
    assert (config.model_type, config.head_dim, config.num_experts, config.num_experts_per_tok) == (
        "qwen3_moe",
        32,
        16,
        2,
    )
    assert not config.tie_word_embeddings
    assert sum(p.numel() for p in model.parameters()) == 1_036_864


def shares(model, batch):
    """[layers, experts] of the choices over a batch."""
    chosen = []
    hooks = [
        layer.mlp.gate.register_forward_hook(lambda _m, _a, out: chosen.append(out[2].flatten()))
        for layer in model.model.layers
    ]
    with torch.no_grad():
        score(model, batch, 1.0, len(batch))
    for hook in hooks:
        hook.remove()
    counts = torch.stack([layer.bincount(minlength=model.config.num_experts) for layer in chosen])
    return counts / counts.sum(1, keepdim=True)


def test_every_expert_is_used(model):
    found = shares(model, demonstrations(SHORT, Chain(), 59))
    assert found.shape == (2, 16)
    assert float(found.min()) > 0


def test_sampled_and_scored_log_probabilities_agree_packed_or_not(model):
    prompts = [CODEC.encode_prompt(text) for text in ("1+2+3=", "4+8+3+9+9+1+7=")]
    noise = GumbelNoise(0, "test", [(b, i) for b in range(2) for i in range(8)], CODEC.vocabulary)
    responses = sample(model, prompts, 8, Decoding(24, 1.0, CODEC.stop_ids), noise)
    batch = [Row(prompts[i // 8], r.tokens) for i, r in enumerate(responses)]
    for pack in (0, 96):
        with torch.no_grad():
            scores = score(model, batch, 1.0, 5, pack)
        table = scores.padded(len(batch), scores.logp).numpy()
        assert max(np.abs(table[i, : len(r.logp)] - r.logp).max() for i, r in enumerate(responses)) < 1e-4


def test_micro_batches_and_recomputed_layers_have_the_gradient_of_the_whole(model):
    groups, gradients = stale_groups(model), []
    for settings in ({}, {"tokens": 60}, {"tokens": 60, "gradient_checkpointing": True, "logits": 7}):
        make(model, "gmc", lr=0.0, **settings).update(7, groups)
        gradients.append(gradient_of(model))
    for found in gradients[1:]:
        assert float((found - gradients[0]).abs().max()) < 1e-6 * float(gradients[0].norm())


@pytest.mark.slow
def test_a_run_resumes_to_the_bit(base_cache, tmp_path, monkeypatch):
    whole = finished(RUN, tmp_path / "whole")
    assert stopped_and_resumed(RUN, tmp_path / "cut", monkeypatch, update=3) == whole
    updates = rows(tmp_path / "whole", "updates")
    assert len(updates) == 6
    assert all(row["fresh_log_ratio"] < 1e-4 for row in updates)
    assert small_config(*RUN).model.kind == "tiny_moe"


@pytest.mark.slow
def test_the_base_has_learned_the_task(base_cache):
    """Greedy well above the 0.1 of a guess; sampled responses are mixed, as reinforcement learning needs them; no
    expert is idle."""
    torch.set_num_threads(1)
    model, task = load_tiny(TinyMoeConf(), Chain(), lambda *_: None).eval(), Chain()
    problems = task.held_out(128)
    prompts = [CODEC.encode_prompt(problem.prompt) for problem in problems]

    def accuracy(repeat, noise):
        drawn = sample(model, prompts, repeat, Decoding(48, 1.0, CODEC.stop_ids), noise)
        grades = [task.grade(problems[i // repeat], CODEC.decode(r.tokens), r.finished) for i, r in enumerate(drawn)]
        return np.mean([grade.correct for grade in grades])

    assert accuracy(1, None) > 0.6
    keys = [(i,) for i in range(4 * 128)]
    assert 0.15 < accuracy(4, GumbelNoise(0, "test", keys, CODEC.vocabulary)) < 0.5
    found = shares(model, demonstrations(TinyMoeConf(), task, TinyMoeConf().sft_steps))
    assert float(found.min()) > 1e-4
    assert float(found.max()) < 0.4, "of 1/2, the most that one of two choices can have"
