"""Published weights: nothing of the old ones survives, and an engine that keeps some is found out."""

import copy
from contextlib import closing

import numpy as np
import pytest
import torch

from delaysim.errors import SamplerFailed
from delaysim.policy.codec import CharacterCodec
from delaysim.policy.sample import Decoding
from delaysim.policy.sampler import Draw
from delaysim.policy.vllm_sampler import VllmSampler
from delaysim.settings.samplers import VllmSamplerConf

pytestmark = pytest.mark.vllm
CODEC = CharacterCodec()
CONF = VllmSamplerConf(max_new_tokens=48)
BLOCK = 32
"""Tokens of a prefix-cache block in these tests, so that a prompt of three is cached."""


def move(model, size=0.02):
    rng = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(size * torch.randn(parameter.shape, generator=rng))


def draw(sampler, prompts, tokens=8):
    keys = [(b, 0, i) for b in range(len(prompts)) for i in range(4)]
    responses = sampler.sample(prompts, 4, Decoding(tokens, 1.0, frozenset()), Draw(0, "test", keys))
    return np.stack([r.tokens for r in responses]), np.stack([r.logp for r in responses])


def long_prompts():
    rng = np.random.default_rng(0)
    return [rng.integers(3, CODEC.vocabulary, 3 * BLOCK + 5).astype(np.int32) for _ in range(3)]


@pytest.fixture(scope="module")
def fresh(tiny):
    """The responses of an engine that never had other weights than the moved ones."""
    learner = copy.deepcopy(tiny)
    move(learner)
    with closing(VllmSampler(learner, CODEC, CONF, block_size=BLOCK)) as sampler:
        return draw(sampler, long_prompts())


@pytest.fixture(scope="module")
def moved(tiny, fresh):
    """A learner of its own, its engine and the responses before and after its weights moved and were published."""
    learner = copy.deepcopy(tiny)
    sampler = VllmSampler(learner, CODEC, CONF, block_size=BLOCK)
    draws = [draw(sampler, long_prompts()) for _ in range(2)]
    move(learner)
    draws.append(draw(sampler, long_prompts()))
    sampler.publish(1)
    draws.append(draw(sampler, long_prompts()))
    yield learner, sampler, draws
    sampler.close()


def test_the_prefix_cache_is_used_and_repeats_itself(moved):
    _, sampler, ((first, logp), (second, again), *_) = moved
    assert np.array_equal(first, second)
    assert np.abs(logp - again).max() < 5e-6
    (output,) = sampler._engine.generate([long_prompts()[0].tolist()], [{"max_tokens": 1, "seed": 0}])
    assert output.num_cached_tokens == 3 * BLOCK, "else this module would test no cache"


def test_weights_count_from_their_publish_on(moved):
    _, _, ((before, _), _, (unpublished, _), (after, _)) = moved
    assert np.array_equal(before, unpublished)
    assert not np.array_equal(before, after)


def test_after_a_publish_the_engine_is_a_fresh_one(moved, fresh):
    _, _, (*_, (tokens, logp)) = moved
    assert np.array_equal(tokens, fresh[0])
    assert np.abs(logp - fresh[1]).max() < 5e-6


def test_an_engine_that_ignores_a_publish_is_found_out(moved, monkeypatch):
    """One update of the size training makes is enough."""
    learner, sampler, _ = moved
    kept = copy.deepcopy(learner.state_dict())
    monkeypatch.setattr(sampler._engine, "publish", lambda *_: None)
    move(learner, 3e-4)
    with pytest.raises(SamplerFailed, match=r"after version 2 .* differ from the learner's by .* nats, above"):
        sampler.publish(2)
    learner.load_state_dict(kept)


def test_an_engine_that_lacks_one_layer_is_found_out(moved):
    learner, sampler, _ = moved
    kept = copy.deepcopy(learner.state_dict())
    with torch.no_grad():
        learner.model.layers[1].mlp.down_proj.weight.mul_(1.05)
    gap = sampler._differences().max()
    learner.load_state_dict(kept)
    assert gap > 1e-3
    assert sampler._differences().max() < 1e-5
