"""bfloat16 products on float32 weights, and layers computed again in the backward pass."""

import copy

import pytest
import torch
from learners import CODEC, gradient_of, make, stale_groups, tiny_base, weights_of
from settings import make_config, run, small_config

from delaysim.errors import UserError
from delaysim.policy.noise import GumbelNoise
from delaysim.policy.sample import Decoding, sample

UPDATE = 7


@pytest.fixture(scope="module")
def base(base_cache):
    return tiny_base()


@pytest.fixture(scope="module")
def groups(base):
    return stale_groups(base)


def updated(base, groups, **settings):
    model = copy.deepcopy(base)
    learner = make(model, "gmc", **settings)
    return model, learner, learner.update(UPDATE, groups)


# Gradient checkpointing.


@pytest.mark.parametrize("settings", [{}, {"tokens": 40}, {"tokens": 40, "logits": 5}, {"precision": "bf16_autocast"}])
def test_layers_computed_again_give_the_same_gradient_to_the_bit(base, groups, settings):
    kept, again = (updated(base, groups, gradient_checkpointing=r, **settings)[0] for r in (False, True))
    assert torch.equal(gradient_of(kept), gradient_of(again))
    assert torch.equal(weights_of(kept), weights_of(again))


def passes(base, groups, **settings):
    """Passes through a layer's inside, with and without gradients, in an update by two micro-batches."""
    model, seen = copy.deepcopy(base), []
    model.model.layers[1].mlp.register_forward_pre_hook(lambda *_: seen.append(torch.is_grad_enabled()))
    make(model, "grpo", tokens=200, pack=0, **settings).update(UPDATE, groups)
    return seen


def test_each_layer_is_computed_once_more_and_only_for_gradients(base, groups):
    assert passes(base, groups) == [True] * 2
    assert passes(base, groups, gradient_checkpointing=True) == [True] * 4


def test_sampling_keeps_its_cache_and_nothing_is_left_in_training_mode(base, groups):
    plain, recomputing = (updated(base, groups, gradient_checkpointing=r)[0] for r in (False, True))
    assert not any(module.training for module in recomputing.modules())
    drawn = []
    for model in (plain, recomputing):
        noise = GumbelNoise(3, "test", [(i,) for i in range(6)], CODEC.vocabulary)
        prompts = [groups[0].prompt, groups[1].prompt]
        drawn.append(sample(model, prompts, 3, Decoding(12, 1.0, CODEC.stop_ids), noise))
    for one, other in zip(*drawn, strict=True):
        assert one.tokens.tolist() == other.tokens.tolist()
        assert one.logp.tolist() == other.logp.tolist()


# Autocast.


def test_weights_gradients_and_moments_stay_float32(base, groups):
    model, learner, _ = updated(base, groups, precision="bf16_autocast")
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert {p.grad.dtype for p in model.parameters()} == {torch.float32}
    assert {t.dtype for t in learner.optimiser_state().values()} == {torch.float32}


def test_the_gradient_is_float32s_to_bfloat16_rounding(base, groups):
    exact, low = (updated(base, groups, precision=p)[0] for p in ("float32", "bf16_autocast"))
    wanted = gradient_of(exact)
    off = float((gradient_of(low) - wanted).norm() / wanted.norm())
    assert 1e-4 < off < 0.05


def test_steps_too_small_for_bfloat16_weights_are_taken(base, groups):
    """Adam's first step is the learning rate in every weight: 1e-6 is far below bfloat16's spacing near 0.1."""
    model, _, _ = updated(base, groups, precision="bf16_autocast", lr=1e-6)
    step = (weights_of(model) - weights_of(base)).abs()
    moving = gradient_of(model).abs() > 1e-5
    assert float((step[moving] - 1e-6).abs().max()) < 2e-8 + 1e-7
    low = copy.deepcopy(base).to(torch.bfloat16)
    before = weights_of(low)
    make(low, "gmc", lr=1e-6).update(UPDATE, groups)
    assert float((weights_of(low) != before).float().mean()) < 0.1


def test_sampler_and_learner_run_in_the_same_precision(base_cache, tmp_path, monkeypatch):
    """Every pass through the head of a run has bfloat16 logits; at delay 0 both then agree to their rounding."""
    seen = set()
    linear = torch.nn.functional.linear

    def watched(values, weight, bias=None):
        made = linear(values, weight, bias)
        seen.add((weight.shape[0] == CODEC.vocabulary, torch.is_grad_enabled(), made.dtype))
        return made

    cfg = small_config("D=0", "learner.precision=bf16_autocast", "updates=2")
    run(small_config("D=0", "updates=1"), tmp_path / "base")  # the base is built outside the watch
    monkeypatch.setattr(torch.nn.functional, "linear", watched)
    assert run(cfg, tmp_path / "run").state == "done"
    assert seen == {(head, grad, torch.bfloat16) for head in (False, True) for grad in (False, True)}
    rows = (tmp_path / "run/updates.jsonl").read_text()
    assert '"fresh_log_ratio": 0.0,' not in rows


def test_bfloat16_weights_are_no_master_weights():
    common = ("model=pretrained", "model.path=a/b", "task=gsm8k", "task.path=x", "learner.precision=bf16_autocast")
    make_config(*common)
    make_config(*common, "model.dtype=bfloat16", "model.lora.rank=8")
    with pytest.raises(UserError, match=r"give model\.dtype=float32, or adapters with model\.lora\.rank=32"):
        make_config(*common, "model.dtype=bfloat16")
