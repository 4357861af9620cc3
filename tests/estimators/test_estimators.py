"""Every estimator against pinned values, autograd of the published losses, and the properties it claims."""

from math import log

import pytest
import torch
from estimators.batches import batch_of, loss_weights, pinned, random_batch

from delaysim.estimators import discover
from delaysim.estimators.advantage import advantages
from delaysim.estimators.base import AGGREGATIONS, aggregation_weights, saturated
from delaysim.measures import kept, removed

ALL = discover()


def kappa(name, batch, **params):
    return ALL[name].coefficients(batch, ALL[name].Params(**params))


def taken(batch, name, **params):
    """Importance mass removed from each response."""
    return removed(batch, kept(batch, kappa(name, batch, **params)))


# REINFORCE-form losses of the pinned group, eps = 0.28, by aggregation.
LOSSES = {
    "is": (-0.357756724, -1.097474987, -0.487766661),
    "gmc": (-0.258447809, -0.792829281, -0.352368569),
    "tic": (-0.095356004, -0.310272827, -0.137899034),
    "reinforce": (0.183333331, 0.1625, 0.072222222),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("aggregation", AGGREGATIONS[:3])
def test_pinned_losses(name, aggregation):
    weights = loss_weights(pinned(), kappa(name, pinned()), aggregation)
    wanted = LOSSES[name][AGGREGATIONS.index(aggregation)]
    assert float(-(weights * pinned().logp).sum()) == pytest.approx(wanted, abs=1e-8)


@pytest.mark.parametrize(("name", "mass"), [("gmc", 0.491842), ("tic", 1.475189), ("is", 0.0)])
def test_pinned_removed_mass(name, mass):
    assert float(taken(pinned(), name).mean()) == pytest.approx(mass, abs=1e-6)


def test_pinned_ratios():
    assert pinned().log_rho.exp()[0].tolist() == pytest.approx([1.419068, 0.818731, 4.481689, 0.367879], abs=1e-6)
    assert kappa("gmc", pinned())[0, :, 0].tolist() == pytest.approx([1.025152, 0.591461, 3.237627, 0.265761], abs=1e-6)


@pytest.mark.parametrize(
    ("name", "gradient"),
    [("gmc", [-0.256288, 0.147865, 0.809407, -0.066440]), ("tic", [0, 0.204683, 0, -0.091970])],
)
def test_pinned_gradients_per_token(name, gradient):
    """-kappa*A/G; a GMC whose alpha carried gradients would give -0.383339, +0.074563, ..."""
    weights = -loss_weights(pinned(), kappa(name, pinned()), "seq_mean_token_sum")
    assert weights[0, :, 0].tolist() == pytest.approx(gradient, abs=1e-6)


def grpo_loss(batch, logp, eps):
    ratio, a = (logp - batch.behaviour).exp(), batch.advantages.unsqueeze(-1)
    surrogate = torch.minimum(ratio * a, ratio.clamp(1 - eps, 1 + eps) * a)
    return -(surrogate * aggregation_weights(batch.mask, "seq_mean_token_mean")).sum()


def test_pinned_grpo_loss():
    """The published surrogate of this very group, before its gradient is compared below."""
    assert float(grpo_loss(pinned(), pinned().logp, 0.2)) == pytest.approx(0.302894187, abs=1e-8)


@pytest.mark.parametrize("seed", range(50))
def test_grpo_coefficients_are_the_gradient_of_the_published_loss(seed):
    batch = random_batch(seed)
    logp = batch.logp.clone().requires_grad_()
    (wanted,) = torch.autograd.grad(grpo_loss(batch, logp, 0.2), logp)
    found = kappa("grpo", batch, eps=0.2)
    assert torch.allclose(-loss_weights(batch, found, "seq_mean_token_mean"), wanted * batch.mask, atol=1e-12)
    assert 0 < int((found == 0).logical_and(batch.mask > 0).sum()) < int(batch.mask.sum())


@pytest.mark.parametrize("seed", range(50))
def test_tic_is_the_derivative_of_the_capped_ratio(seed):
    batch = random_batch(seed)
    logp = batch.logp.clone().requires_grad_()
    rho = ((logp - batch.behaviour) * batch.mask).sum(-1).exp()
    (wanted,) = torch.autograd.grad((rho.clamp(max=1.28) * batch.advantages).sum(), logp)
    found = kappa("tic", batch, eps=0.28) * batch.advantages.unsqueeze(-1)
    assert torch.allclose(found, wanted * batch.mask, atol=1e-10)


@pytest.mark.parametrize("seed", range(100))
@pytest.mark.parametrize("eps", [0.0, 0.28, 2.0])
def test_gmc_caps_the_mean_and_keeps_the_direction(seed, eps):
    batch = random_batch(seed)
    rho, found = batch.log_rho.exp(), kappa("gmc", batch, eps=eps)[:, :, 0]
    assert torch.allclose(found.mean(1), rho.mean(1).clamp(max=1 + eps), atol=1e-12)
    assert torch.allclose(found / found.mean(1, keepdim=True), rho / rho.mean(1, keepdim=True), atol=1e-12)


@pytest.mark.parametrize("seed", range(100))
def test_removed_mass_is_least_for_gmc_and_most_for_tic(seed):
    batch = random_batch(seed)
    rho = batch.log_rho.exp()
    gmc, tic = (taken(batch, name, eps=0.28).mean(1) for name in ("gmc", "tic"))
    tis = (rho - rho.clamp(max=1.28)).mean(1)
    assert (gmc <= tis + 1e-12).all()
    assert (tis <= tic + 1e-12).all()


def test_saturated_tokens_are_counted():
    mask = torch.ones(1, 2, 3, dtype=torch.float64)
    logp = torch.tensor([[[40.0, 0, 0], [log(2.0), 0, 0]]], dtype=torch.float64)
    batch = batch_of(logp, torch.zeros_like(logp), mask, torch.ones(1, 2, dtype=torch.float64))
    assert saturated(kappa("is", batch)) == 3
    assert saturated(kappa("reinforce", batch)) == 0


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 0.7, 1e-3])
@pytest.mark.parametrize("kind", ["group_norm", "group_mean"])
def test_equal_rewards_have_no_advantage_at_all(value, kind):
    assert torch.equal(advantages(torch.full((2, 8), value), kind, torch.full((2, 8), 3.0)), torch.zeros(2, 8))


def test_pinned_advantages():
    rewards = torch.tensor([[1.0, 0.0, 0.0, 1.0]], dtype=torch.float64)
    lengths = torch.tensor([[3.0, 2.0, 3.0, 1.0]])
    assert advantages(rewards, "group_norm", lengths)[0].tolist() == pytest.approx(
        [0.865875, -0.865875, -0.865875, 0.865875], abs=1e-6
    )
    assert advantages(rewards, "group_mean", lengths)[0].tolist() == [0.5, -0.5, -0.5, 0.5]
    assert advantages(rewards, "reward", lengths)[0].tolist() == [1.0, 0.0, 0.0, 1.0]


def test_aggregations_sum_to_what_they_say():
    mask = random_batch(4).mask
    assert float(aggregation_weights(mask, "seq_mean_token_mean").sum()) == pytest.approx(1)
    assert float(aggregation_weights(mask, "token_mean").sum()) == pytest.approx(1)
    assert float(aggregation_weights(mask, "seq_mean_token_sum").sum()) == pytest.approx(float(mask.sum()) / 15)
