"""Every estimator against pinned values, autograd of the published losses, and the properties it claims."""

from math import exp, log

import pytest
import torch

from delaysim.estimators import discover
from delaysim.estimators.advantage import advantages
from delaysim.estimators.base import (
    AGGREGATIONS,
    LOG_KAPPA_BOUND,
    GroupBatch,
    aggregation_weights,
    kept,
    loss_weights,
    saturated,
)

ALL = discover()
LENGTHS = [3, 2, 3, 1]
BEHAVIOUR = [[-1, -0.5, -2], [-0.7, -1.2], [-1.5, -0.8, -0.9], [-0.3]]
LOG_RATIO = [[0.1, -0.05, 0.3], [-0.4, 0.2], [0.6, 0.5, 0.4], [-1]]
ADVANTAGE = [1.0, -1.0, -1.0, 1.0]


def padded(rows):
    return torch.tensor([[[*row, *[0.0] * (3 - len(row))] for row in rows]], dtype=torch.float64)


def batch_of(logp, behaviour, mask, advantage):
    b = logp.shape[0]
    rewards = (advantage > 0).double()
    zeros = torch.zeros(b, dtype=torch.long)
    return GroupBatch(logp, behaviour, mask, rewards, advantage, zeros + 3, zeros)


@pytest.fixture
def pinned():
    behaviour, delta = padded(BEHAVIOUR), padded(LOG_RATIO)
    mask = padded([[1.0] * length for length in LENGTHS])
    return batch_of(behaviour + delta, behaviour, mask, torch.tensor([ADVANTAGE], dtype=torch.float64))


def random_batch(seed, b=3, g=5, t=7, spread=0.6):
    rng = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, t + 1, (b, g, 1), generator=rng)
    mask = (torch.arange(t) < lengths).double()
    logp = -torch.rand(b, g, t, generator=rng, dtype=torch.float64) * mask
    delta = torch.randn(b, g, t, generator=rng, dtype=torch.float64) * spread * mask
    return batch_of(logp, logp - delta, mask, torch.randn(b, g, generator=rng, dtype=torch.float64))


def kappa(name, batch, **params):
    return ALL[name].coefficients(batch, ALL[name].Params(**params))


# REINFORCE-form losses of the pinned group, eps = 0.28, by aggregation.
LOSSES = {
    "is": (-0.357756724, -1.097474987, -0.487766661),
    "gmc": (-0.258447809, -0.792829281, -0.352368569),
    "tic": (-0.095356004, -0.310272827, -0.137899034),
    "reinforce": (0.183333331, 0.1625, 0.072222222),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_pinned_losses(pinned, name, aggregation):
    weights = loss_weights(pinned, kappa(name, pinned), aggregation)
    wanted = LOSSES[name][AGGREGATIONS.index(aggregation)]
    assert float(-(weights * pinned.logp).sum()) == pytest.approx(wanted, abs=1e-8)


@pytest.mark.parametrize(("name", "removed"), [("gmc", 0.491842), ("tic", 1.475189), ("is", 0.0)])
def test_pinned_removed_mass(pinned, name, removed):
    assert float(kept(pinned, kappa(name, pinned)).removed.mean()) == pytest.approx(removed, abs=1e-6)


def test_pinned_ratios(pinned):
    assert pinned.log_rho.exp()[0].tolist() == pytest.approx([1.419068, 0.818731, 4.481689, 0.367879], abs=1e-6)
    assert kappa("gmc", pinned)[0, :, 0].tolist() == pytest.approx([1.025152, 0.591461, 3.237627, 0.265761], abs=1e-6)


@pytest.mark.parametrize(
    ("name", "gradient"),
    [("gmc", [-0.256288, 0.147865, 0.809407, -0.066440]), ("tic", [0, 0.204683, 0, -0.091970])],
)
def test_pinned_gradients_per_token(pinned, name, gradient):
    """-kappa*A/G; a GMC whose alpha carried gradients would give -0.383339, +0.074563, ..."""
    weights = -loss_weights(pinned, kappa(name, pinned), "seq_mean_token_sum")
    assert weights[0, :, 0].tolist() == pytest.approx(gradient, abs=1e-6)


def grpo_loss(batch, logp, eps):
    ratio, a = (logp - batch.behaviour).exp(), batch.advantages.unsqueeze(-1)
    surrogate = torch.minimum(ratio * a, ratio.clamp(1 - eps, 1 + eps) * a)
    return -(surrogate * aggregation_weights(batch.mask, "seq_mean_token_mean")).sum()


def test_pinned_grpo_loss(pinned):
    """The published surrogate of this very group, before its gradient is compared below."""
    assert float(grpo_loss(pinned, pinned.logp, 0.2)) == pytest.approx(0.302894187, abs=1e-8)


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


@pytest.mark.parametrize("name", ALL)
def test_at_delay_0_every_coefficient_is_exactly_1(name):
    batch = random_batch(1, spread=0.0)
    assert torch.equal(kappa(name, batch), batch.mask)


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
    gmc, tic = (kept(batch, kappa(name, batch, eps=0.28)).removed.mean(1) for name in ("gmc", "tic"))
    tis = (rho - rho.clamp(max=1.28)).mean(1)
    assert (gmc <= tis + 1e-12).all()
    assert (tis <= tic + 1e-12).all()


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("size", [1e4, -1e4, 700.0])
def test_finite_for_extreme_ratios_and_long_responses(name, size):
    mask = torch.ones(1, 4, 32_000, dtype=torch.float64)
    behaviour = -torch.ones_like(mask)
    logp = behaviour.clone()
    logp[0, 0, 0] += size
    logp[0, 1] -= size / 32_000
    batch = batch_of(logp, behaviour, mask, torch.tensor([[1.0, -1.0, 1.0, -1.0]], dtype=torch.float64))
    found = kappa(name, batch)
    assert found.isfinite().all()
    assert float(found.max()) <= exp(LOG_KAPPA_BOUND) * (1 + 1e-9)
    assert (found >= 0).all()


def test_saturated_tokens_are_counted():
    mask = torch.ones(1, 2, 3, dtype=torch.float64)
    logp = torch.tensor([[[40.0, 0, 0], [log(2.0), 0, 0]]], dtype=torch.float64)
    batch = batch_of(logp, torch.zeros_like(logp), mask, torch.ones(1, 2, dtype=torch.float64))
    assert saturated(kappa("is", batch)) == 3
    assert saturated(kappa("reinforce", batch)) == 0


@pytest.mark.parametrize("name", ALL)
def test_padding_and_order_do_not_matter(name):
    batch = random_batch(7)
    found = kappa(name, batch)
    wide = {k: torch.nn.functional.pad(getattr(batch, k), (0, 4)) for k in ("logp", "behaviour", "mask")}
    assert torch.allclose(kappa(name, batch_of(**wide, advantage=batch.advantages))[:, :, :-4], found, atol=1e-14)
    order = torch.tensor([3, 1, 4, 0, 2])
    mixed = {k: getattr(batch, k)[:, order] for k in ("logp", "behaviour", "mask")}
    again = kappa(name, batch_of(**mixed, advantage=batch.advantages[:, order]))
    assert torch.allclose(again, found[:, order], atol=1e-14)


@pytest.mark.parametrize("name", ALL)
def test_no_estimator_reaches_beyond_its_scope(name):
    batch = random_batch(9)
    alone = batch_of(batch.logp[:1], batch.behaviour[:1], batch.mask[:1], batch.advantages[:1])
    assert ALL[name].SCOPE in ("response", "group")
    assert torch.allclose(kappa(name, alone), kappa(name, batch)[:1], atol=1e-14)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 0.7, 1e-3])
@pytest.mark.parametrize("kind", ["group_norm", "group_mean"])
def test_equal_rewards_have_no_advantage_at_all(value, kind):
    assert torch.equal(advantages(torch.full((2, 8), value), kind), torch.zeros(2, 8))


def test_pinned_advantages():
    rewards = torch.tensor([[1.0, 0.0, 0.0, 1.0]], dtype=torch.float64)
    assert advantages(rewards, "group_norm")[0].tolist() == pytest.approx(
        [0.865875, -0.865875, -0.865875, 0.865875], abs=1e-6
    )
    assert advantages(rewards, "group_mean")[0].tolist() == [0.5, -0.5, -0.5, 0.5]
    assert advantages(rewards, "reward")[0].tolist() == [1.0, 0.0, 0.0, 1.0]


def test_aggregations_sum_to_what_they_say():
    mask = random_batch(4).mask
    assert float(aggregation_weights(mask, "seq_mean_token_mean").sum()) == pytest.approx(1)
    assert float(aggregation_weights(mask, "token_mean").sum()) == pytest.approx(1)
    assert float(aggregation_weights(mask, "seq_mean_token_sum").sum()) == pytest.approx(float(mask.sum()) / 15)
