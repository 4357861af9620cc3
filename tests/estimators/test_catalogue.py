"""Every estimator of the catalogue on the pinned group: losses and coefficients that published code or hand gave."""

from math import exp

import pytest
import torch
from estimators.batches import pinned, pinned_as_groups, random_batch

from delaysim.estimators import make
from delaysim.estimators.advantage import advantages
from delaysim.estimators.base import aggregation_weights, loss_weights

SUM, MEAN, TOKENS = "seq_mean_token_sum", "seq_mean_token_mean", "token_mean"


def kappa(name, batch, **settings):
    return make(name, **settings).coefficients(batch)


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


def decoupled_loss(batch, anchor, weight, cap=5.0):
    """AReaL's: the value of -(weight * min(u A, clip(u) A)) over all tokens, the original count below."""
    u = (batch.logp - anchor).exp()
    a = batch.advantage
    inner = torch.minimum(u * a, u.clamp(0.8, 1.2) * a)
    behind = (anchor - batch.behaviour).exp()
    held = behind * (behind <= cap) if weight else torch.ones_like(behind)
    return float(-(held * inner * aggregation_weights(batch.mask, TOKENS)).sum())


@pytest.mark.parametrize(("weight", "loss"), [(False, 0.187900190), (True, 0.342249872)])
def test_pinned_a3po(weight, loss):
    """Delays 4, 4, 8, 0: the loss has the pinned value at our anchor, and our coefficient is its gradient."""
    batch = pinned_as_groups([4, 4, 8, 0])
    alpha = torch.tensor([3 / 4, 3 / 4, 7 / 8, 0.0], dtype=torch.float64)[:, None, None]
    anchor = batch.behaviour + alpha * (batch.logp - batch.behaviour)
    assert decoupled_loss(batch, anchor, weight) == pytest.approx(loss, abs=2e-8)
    u = (batch.logp - anchor).exp()
    free = ~(((batch.advantage > 0) & (u > 1.2)) | ((batch.advantage < 0) & (u < 0.8)))
    behind = (anchor - batch.behaviour).exp()
    wanted = u * free * (behind if weight else 1.0) * batch.mask
    assert torch.allclose(kappa("a3po", batch, weight=weight), wanted, atol=1e-12)


def test_a3po_clips_within_powers_of_the_clip_range():
    """At delay d the clip on u is one on r at (1-eps)^d and (1+eps)^d: at 32 it is as good as none."""
    for delay, low, high in ((1, 0.8, 1.2), (4, 0.8**4, 1.2**4)):
        for r, good in ((high * 0.999, True), (high * 1.001, False), (low * 1.001, True), (low * 0.999, False)):
            batch = one_token(r, advantage=1.0 if r > 1 else -1.0, delay=delay)
            assert bool(kappa("a3po", batch, cap=1e9).item()) == good, (delay, r)
    for r in (1e-3, 300.0):
        batch = one_token(r, advantage=1.0 if r > 1 else -1.0, delay=32)
        assert kappa("a3po", batch, cap=1e9).item() == pytest.approx(r, rel=1e-12)


def one_token(ratio, advantage, delay=3, logp=-6.0, **more):
    logp = torch.tensor([[[logp]]], dtype=torch.float64)
    behaviour = logp - torch.tensor(ratio, dtype=torch.float64).log()
    return pinned_like(logp, behaviour, advantage, delay, **more)


def pinned_like(logp, behaviour, advantage, delay, **more):
    from estimators.batches import batch_of

    a = torch.full(logp.shape[:2], advantage, dtype=torch.float64)
    return batch_of(logp, behaviour, torch.ones_like(logp), a, delays=[delay] * logp.shape[0], **more)


def test_a3po_linear_interpolates_probabilities():
    batch = one_token(3.0, advantage=1.0, delay=4)
    mu, pi = float(batch.behaviour.exp()), float(batch.logp.exp())
    between = 0.25 * mu + 0.75 * pi + 1e-10
    found = kappa("a3po", batch, method="linear", eps=9.0, weight=False).item()
    assert found == pytest.approx(pi / between, rel=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_decoupled_with_one_step_is_token_importance_sampling(seed):
    """The anchor is then the current policy: u = 1, nothing is clipped, and tokens above the cap are dropped."""
    batch = random_batch(seed, spread=1.2)
    wanted = batch.ratio * (batch.ratio <= 5) * batch.mask
    assert (batch.ratio * batch.mask > 5).any() or seed
    assert torch.allclose(kappa("decoupled", batch), wanted, atol=1e-12)
    assert torch.equal(kappa("decoupled", batch), kappa("icepop", batch, low=0.0, cap=5.0))


def test_decoupled_without_clipping_does_not_depend_on_the_anchor():
    batch = random_batch(5, spread=0.3)
    anchors = [batch.behaviour, batch.logp, 0.4 * batch.logp + 0.6 * batch.behaviour]
    found = [kappa("decoupled", with_anchor(batch, x), eps=1e6, cap=1e9) for x in anchors]
    assert torch.allclose(found[0], found[1], atol=1e-12)
    assert torch.allclose(found[0], found[2], atol=1e-12)


def with_anchor(batch, anchor):
    from dataclasses import replace

    return replace(batch, proximal=anchor)


def test_m2po_areal_masks_the_largest_squares():
    """Thresholds .04 and .1 on the pinned group; the mask compares the proximal policy with the behaviour."""
    found = (kappa("m2po", pinned(), rule="areal", budget=0.04) > 0)[0].int().tolist()
    assert found == [[1, 1, 1], [0, 1, 0], [0, 0, 0], [0, 0, 0]]
    found = (kappa("m2po", pinned(), rule="areal", budget=0.1) > 0)[0].int().tolist()
    assert found == [[1, 1, 1], [1, 1, 0], [0, 0, 1], [0, 0, 0]]
    tiny = (kappa("m2po", pinned(), rule="areal", budget=1e-9) > 0).sum()
    assert tiny == 1, "the least of all is always kept"


def test_m2po_authors_bounds_follow_the_budget():
    """Budget .04 gives the bounds e^-.1 and e^.1 on the pinned group: its harmful tokens are +.1, +.3 and -.4."""
    batch = pinned()
    found = kappa("m2po", batch)[0]
    r = batch.ratio[0]
    wanted = r * batch.mask[0]
    wanted[0, 0] = wanted[0, 2] = 0  # A > 0 and r at or above e^.1
    wanted[1, 0] = 0  # A < 0 and r below e^-.1
    assert torch.allclose(found, wanted, atol=1e-12)
    assert torch.equal(kappa("m2po", batch, budget=1.0), batch.ratio * batch.mask), "within the budget nothing is cut"


@pytest.mark.parametrize("seed", range(30))
def test_m2po_authors_never_exceeds_its_budget_and_nearly_uses_it(seed):
    batch = random_batch(seed, b=4, g=6, t=9)
    kept = kappa("m2po", batch) > 0
    a = batch.advantage.expand_as(batch.mask)
    harmful = (((a > 0) & (batch.log_ratio > 0)) | ((a < 0) & (batch.log_ratio < 0))) & (batch.mask > 0)
    cut = harmful & ~kept
    bound = batch.log_ratio[cut].abs().min()
    capped = batch.log_ratio[harmful].abs().clamp(max=float(bound))
    assert float(capped.pow(2).mean()) <= 0.04
    next_up = batch.log_ratio[cut].abs().sort().values[1]
    assert float(batch.log_ratio[harmful].abs().clamp(max=float(next_up)).pow(2).mean()) > 0.04 - 1e-9


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
