"""Every estimator of the catalogue on the pinned group: losses and coefficients that published code or hand gave."""

from math import exp

import pytest
import torch
from estimators.batches import kappa, loss_weights, one_token, pinned, pinned_like, random_batch

from delaysim.estimators.advantage import advantages
from delaysim.estimators.base import aggregation_weights

SUM, MEAN, TOKENS = "seq_mean_token_sum", "seq_mean_token_mean", "token_mean"


def reinforce_loss(name, aggregation, batch=None, **settings):
    """-(kappa * A * log pi), averaged: the value of a loss in REINFORCE form."""
    batch = pinned() if batch is None else batch
    return float(-(loss_weights(batch, kappa(name, batch, **settings), aggregation) * batch.logp).sum())


@pytest.mark.parametrize(
    ("name", "settings", "aggregation", "loss"),
    [
        ("tis", {"cap": 1.28}, SUM, 0.153727173),
        ("tis", {"cap": 1.28}, MEAN, 0.059310662),
        ("tis", {"cap": 1.28}, TOKENS, 0.068323188),
        ("cispo", {"cap": 1.2}, TOKENS, 0.006524581),
        ("cispo", {"cap": 0.2}, TOKENS, 0.014444444),
        ("vespo", {}, TOKENS, 0.130610975),
        ("topr", {}, SUM, 0.257666355),
        ("dppo", {"eps": 0.2}, TOKENS, -0.060928578),
    ],
)
def test_pinned_losses_in_reinforce_form(name, settings, aggregation, loss):
    assert reinforce_loss(name, aggregation, **settings) == pytest.approx(loss, abs=2e-8)


def surrogate(name, batch, logp):
    """Published losses in ratio form as functions of the current log-probabilities [B, G, T], to be minimised."""
    delta, a, mask = (logp - batch.behaviour) * batch.mask, batch.advantages.unsqueeze(-1), batch.mask
    r, s = delta.exp(), (delta.sum(-1) / batch.lengths).exp()
    mean = aggregation_weights(mask, MEAN)
    tokens = aggregation_weights(mask, TOKENS)
    flat = batch.advantages
    n = flat.numel()

    def ppo(u, adv, low, high):
        return torch.minimum(u * adv, u.clamp(low, high) * adv)

    if name == "grpo":
        return -(ppo(r, a, 0.8, 1.2) * mean).sum()
    if name == "dapo":
        return -(ppo(r, a, 0.8, 1.28) * tokens).sum()
    if name == "drgrpo":
        return -(ppo(r, a, 0.8, 1.2) * mask / n / 3).sum()
    if name == "dualclip":
        held = torch.maximum(ppo(r, a, 0.8, 1.2), 3.0 * a)
        return -(torch.where(a < 0, held, ppo(r, a, 0.8, 1.2)) * mean).sum()
    if name == "gspo wide":
        return -ppo(s, flat, 0.8, 1.28).sum() / n
    if name == "gspo":
        return -ppo(s, flat, 1 - 3e-4, 1 + 4e-4).sum() / n
    if name == "sapo":
        tau = 1.05 - 0.05 * (a > 0).double()
        return -(torch.sigmoid(tau * (r - 1)) * 4 / tau * a * mean).sum()
    if name == "gmpo":
        sign = a.sign()
        clipped = sign * torch.minimum(sign * delta, sign * delta.clamp(-0.2, 0.2))
        return -((clipped.sum(-1) / batch.lengths).exp() * flat).sum() / n
    if name == "gepo":
        p, q = ((x * mask).sum(-1) / batch.lengths for x in (logp, batch.behaviour))
        q = q.exp()
        coef = p.exp() / ((q * q).sum(1, keepdim=True) / q.sum(1, keepdim=True)).detach()
        return -ppo(coef, flat, 0.8, 1.2).sum() / n
    raise AssertionError(name)


SURROGATES = {
    "grpo": ("grpo", {}, MEAN, 0.302894187),
    "dapo": ("dapo", {}, TOKENS, 0.364420860),
    "drgrpo": ("drgrpo", {}, "fixed_length", 0.279982312),
    "dualclip": ("dualclip", {}, MEAN, None),
    "gspo wide": ("gspo", {"eps": 0.28, "eps_low": 0.2}, MEAN, 0.265483615),
    "gspo": ("gspo", {}, MEAN, 0.320035457),
    "sapo": ("sapo", {}, MEAN, 0.215256415),
    "gmpo": ("gmpo", {"eps": 0.2, "eps_low": 0.2}, MEAN, 0.298484443),
    "gepo": ("gepo", {}, MEAN, 0.173141918),
}


@pytest.mark.parametrize("case", SURROGATES)
def test_the_surrogates_below_have_the_pinned_values(case):
    wanted = SURROGATES[case][3]
    batch = pinned()
    if wanted is not None:  # verl's mean over tokens divides by the count + 1e-8
        assert float(surrogate(case, batch, batch.logp)) == pytest.approx(wanted, abs=5e-9)


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("case", SURROGATES)
def test_coefficients_are_the_gradient_of_the_published_surrogate(case, seed):
    name, settings, aggregation, _ = SURROGATES[case]
    batch = pinned() if seed == 0 else random_batch(seed, t=3, spread=0.8)
    logp = batch.logp.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(surrogate(case, batch, logp), logp)
    ours = loss_weights(batch, kappa(name, batch, **settings), aggregation, longest=3)
    assert torch.allclose(-ours, gradient * batch.mask, atol=1e-12)


def test_dual_clip_only_takes_away_bad_tokens_beyond_it():
    batch = random_batch(3, spread=1.5)
    plain, dual = kappa("grpo", batch), kappa("dualclip", batch)
    gone = (batch.advantage < 0) & (batch.ratio > 3) & (batch.mask > 0)
    assert gone.any()
    assert torch.equal(dual, plain * ~gone)


def test_pinned_weights_of_vespo_and_gepo():
    batch = pinned()
    assert kappa("vespo", batch)[0, :, 0].tolist() == pytest.approx([0.572809, 0.788627, 0.085147, 0.901551], abs=1e-6)
    coef = [0.682845, 0.682845, 1.107213, 0.531800]
    wide = kappa("gepo", batch, eps=10.0)[0, :, 0].tolist()
    assert wide == pytest.approx(coef, abs=1e-6)
    assert kappa("gepo", batch)[0, :, 0].tolist() == pytest.approx([0.682845, 0.0, 1.107213, 0.5318], abs=1e-6)


def test_opsm_drops_bad_responses_that_lost_probability():
    """Mean log-probability lost on the pinned group: -.117, .1, -.5, 1. The fourth lost most, but has A > 0."""
    batch = pinned()
    found = kappa("opsm", batch, delta=0.1)[0]
    assert [bool(row.any()) for row in found] == [True, False, True, True]
    assert torch.equal(found[[0, 2, 3]], kappa("grpo", batch)[0][[0, 2, 3]])


def test_topr_counts_good_responses_fully():
    found = kappa("topr", pinned())[0, :, 0].tolist()
    assert found == pytest.approx([1.0, exp(-0.2), 1.0, 1.0], rel=1e-12)


def test_masks_at_their_bounds():
    rho = [0.5, 0.499, 5.0, 5.001]
    batch = pinned_like(
        torch.zeros(1, 4, 1, dtype=torch.float64), -torch.tensor([[[x] for x in rho]]).double().log(), 1.0, 3
    )
    for name in ("mis", "icepop"):
        found = kappa(name, batch, low=0.5, cap=5.0).flatten().tolist()
        assert found == pytest.approx([0.5, 0.0, 5.0, 0.0], rel=1e-12, abs=0)
    assert kappa("mis", batch).flatten().tolist() == pytest.approx([0.5, 0.499, 0.0, 0.0], rel=1e-7, abs=0)


def test_dppo_bounds_the_move_of_a_probability_not_its_ratio():
    rare = one_token(15.0, advantage=1.0, logp=-4.0)  # from .0012 to .018
    common = one_token(1.5, advantage=1.0, logp=-0.4)  # from .45 to .67
    assert kappa("dppo", rare).item() == pytest.approx(15.0)
    assert kappa("dppo", common).item() == 0.0
    assert kappa("dppo", one_token(50.0, advantage=1.0, logp=-4.0)).item() == pytest.approx(20.0)
    assert kappa("dppo", one_token(1.5, advantage=-1.0, logp=-0.4)).item() == pytest.approx(1.5)


def test_snis_has_mean_one_and_the_direction_of_is():
    batch = random_batch(2)
    found = kappa("snis", batch)[:, :, 0]
    assert torch.allclose(found.mean(1), torch.ones(3, dtype=torch.float64), atol=1e-12)
    assert torch.allclose(found * batch.rho.mean(1, keepdim=True), batch.rho, atol=1e-12)


def test_gspo_token_is_gspo_with_one_advantage_per_response():
    for seed in range(20):
        batch = random_batch(seed)
        for settings in ({}, {"eps": 0.2, "eps_low": 0.1}):
            assert torch.equal(kappa("gspo", batch, **settings), kappa("gspo_token", batch, **settings))


def test_advantages_by_hand():
    rewards = torch.tensor([[1.0, 0.0, 0.0, 1.0]], dtype=torch.float64)
    lengths = torch.tensor([[4.0, 2.0, 2.0, 1.0]], dtype=torch.float64)
    assert advantages(rewards, "leave_one_out", lengths)[0].tolist() == pytest.approx([2 / 3, -2 / 3, -2 / 3, 2 / 3])
    assert advantages(rewards, "signed_reward", lengths)[0].tolist() == [1.0, -1.0, -1.0, 1.0]
    scores = torch.tensor([0.25, 0.0, 0.0, 1.0], dtype=torch.float64)
    wanted = (scores - scores.mean()) / (scores.std() + 1e-4)
    assert advantages(rewards, "length_norm", lengths)[0].tolist() == pytest.approx(wanted.tolist(), rel=1e-12)
    equal = advantages(torch.full((1, 4), 0.7), "leave_one_out", lengths)
    assert torch.equal(equal, torch.zeros(1, 4))
