"""Estimators at their thresholds, at ratios beyond any number, and against the derivation that is easy to get wrong."""

from math import exp, expm1, log1p

import pytest
import torch
from estimators.batches import loss_weights

from delaysim.estimators import discover, make
from delaysim.estimators.base import AGGREGATIONS, LOG_KAPPA_BOUND, GroupBatch, saturated
from delaysim.measures import ess, kept, removed, weight

ALL = discover()


def batch_of(log_ratio, advantages=None, mask=None):
    """Groups whose behaviour log-probabilities are all -5."""
    delta = torch.as_tensor(log_ratio, dtype=torch.float64)
    mask = torch.ones_like(delta) if mask is None else mask
    behaviour = -5 * mask
    b, g, _ = delta.shape
    a = torch.ones(b, g, dtype=torch.float64) if advantages is None else torch.tensor(advantages, dtype=torch.float64)
    zeros = torch.zeros(b, dtype=torch.long)
    return GroupBatch(behaviour + delta * mask, behaviour, mask, (a > 0).double(), a, zeros, zeros)


def kappa(name, batch, **params):
    return ALL[name].coefficients(batch, ALL[name].Params(**params))


SEED_METHODS = {"gmc": 0.28, "tic": 0.28, "grpo": 0.2, "tis": 7.0, "cispo": 4.0, "a3po": 0.2, "gspo": 4e-4}


def test_everyone_knows_its_name_and_the_published_thresholds():
    assert {name: module.Params().name for name, module in ALL.items()} == {name: name for name in ALL}
    assert {name: make(name).eps for name in SEED_METHODS} == pytest.approx(SEED_METHODS)


@pytest.mark.parametrize("eps", [0.1, 0.28, 1.0])
def test_tic_keeps_a_response_that_stands_at_its_threshold(eps):
    """The clamp's gradient passes at equality; the next number above is dropped, for either sign of the advantage."""
    cap = log1p(eps)
    behaviour = torch.zeros(1, 4, 1, dtype=torch.float64)
    above = torch.nextafter(torch.tensor(cap, dtype=torch.float64), torch.tensor(9.0, dtype=torch.float64))
    logp = torch.tensor([cap, float(above), cap, float(above)], dtype=torch.float64).view(1, 4, 1)
    a = torch.tensor([[1.0, 1.0, -1.0, -1.0]], dtype=torch.float64)
    zeros = torch.zeros(1, dtype=torch.long)
    batch = GroupBatch(logp, behaviour, torch.ones_like(logp), a, a, zeros, zeros)
    found = kappa("tic", batch, eps=eps).flatten().tolist()
    assert found == pytest.approx([1 + eps, 0, 1 + eps, 0], rel=1e-12, abs=0)


def test_one_outlier_may_carry_the_whole_cap_of_its_group():
    """GMC bounds a response by G*(1+eps) = 10.24 at G=8, where TIC bounds it by 1.28."""
    batch = batch_of([[[2000.0], *[[0.0]] * 7]])
    gmc, tic = kappa("gmc", batch).flatten(), kappa("tic", batch).flatten()
    assert float(gmc[0]) == pytest.approx(10.24, rel=1e-9)
    assert float(gmc[1:].max()) < 1e-300
    assert tic.tolist() == [0.0, *[1.0] * 7]


def test_gmc_without_slack_is_self_normalised_importance_sampling():
    batch = batch_of([[[0.5], [1.0], [-0.5], [2.0]]])
    rho = batch.log_rho.exp()[0]
    assert kappa("gmc", batch, eps=0.0).flatten().tolist() == pytest.approx((rho / rho.mean()).tolist(), rel=1e-12)


def test_gmc_treats_every_group_by_itself():
    calm, wild = [[0.1], [-0.1]], [[3.0], [0.0]]
    found = kappa("gmc", batch_of([calm, wild]))
    assert torch.equal(found[0], batch_of([calm]).log_ratio[0].exp()), "below the cap alpha is exactly 1"
    assert float(found[1].mean()) == pytest.approx(1.28, rel=1e-12)


def test_gmc_with_a_gradient_through_alpha_would_be_another_estimator():
    """The pinned group: ours is -0.256288 ..., the wrong one -0.383339, +0.074563, +0.408154, -0.099377."""
    sums = torch.tensor([0.35, -0.2, 1.5, -1.0], dtype=torch.float64, requires_grad=True)
    a = torch.tensor([1.0, -1.0, -1.0, 1.0], dtype=torch.float64)
    rho = sums.exp()
    (wrong,) = torch.autograd.grad(-((1.28 / rho.mean()) * rho * a).mean(), sums)
    assert wrong.tolist() == pytest.approx([-0.383339, 0.074563, 0.408154, -0.099377], abs=1e-6)
    batch = batch_of(sums.detach().view(1, 4, 1), [a.tolist()])
    ours = -loss_weights(batch, kappa("gmc", batch), "seq_mean_token_sum").flatten()
    (right,) = torch.autograd.grad(-((1.28 / sums.exp().mean()).detach() * sums.exp() * a).mean(), sums)
    assert torch.allclose(ours, right, atol=1e-12)
    assert float((ours - wrong).abs().min()) > 0.03


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("tokens", [1, 32_000])
def test_nothing_overflows_when_every_token_is_extreme(name, tokens):
    """Token log-ratios of up to 1e4 over 32,000 tokens: sums of 3e8, and every mixture of signs."""
    signs = torch.tensor([[1.0, -1.0, 1.0, 0.0], [-1.0, -1.0, -1.0, -1.0], [1.0, 1.0, 1.0, 1.0]]).double()
    rng = torch.Generator().manual_seed(0)
    size = 1e4 * torch.rand(3, 4, tokens, generator=rng, dtype=torch.float64)
    batch = batch_of(signs.unsqueeze(-1) * size, [[1.0, 1.0, -1.0, -1.0]] * 3)
    found = kappa(name, batch)
    mean = kept(batch, found)
    for values in (
        found,
        mean,
        weight(batch, mean),
        removed(batch, mean),
        *(loss_weights(batch, found, k) for k in AGGREGATIONS),
    ):
        assert values.isfinite().all()
    assert float(found.min()) >= 0
    assert float(found.max()) <= exp(LOG_KAPPA_BOUND)
    assert 0 < float(ess(batch.log_rho.flatten())) <= 1
    assert saturated(found) == int((found == exp(LOG_KAPPA_BOUND)).sum())
    if name == "is":
        assert saturated(found) == int((signs == 1).sum()) * tokens


def test_only_tokens_at_the_bound_count_as_saturated():
    batch = batch_of([[[29.999, 0.0], [30.0, 0.0], [31.0, 5.0], [0.0, 0.0]]])
    assert saturated(kappa("is", batch)) == 4
    assert saturated(kappa("grpo", batch_of([[[31.0, 29.0], [0.0, 31.0]]], [[-1.0, 1.0]]))) == 1


def test_grpo_leaves_a_bad_token_that_became_likelier_unbounded():
    """A < 0 and r > 1: the pessimistic minimum is the unclipped branch, the coefficient is r itself."""
    batch = batch_of([[[3.0, -3.0, 0.1], [3.0, -3.0, -0.1]]], [[-1.0, 1.0]])
    found = kappa("grpo", batch)[0]
    assert found[0].tolist() == pytest.approx([exp(3), 0, exp(0.1)], rel=1e-12)
    assert found[1].tolist() == pytest.approx([0, exp(-3), exp(-0.1)], rel=1e-12)


def test_kept_and_removed_are_of_each_response():
    batch = batch_of([[[0.5, 0.0], [-0.5, 0.0]]])
    mean = kept(batch, kappa("tic", batch))
    assert mean[0].tolist() == pytest.approx([0.0, exp(-0.5)], rel=1e-12)
    assert weight(batch, mean)[0].tolist() == pytest.approx([0.0, 1.0], rel=1e-12)
    assert removed(batch, mean)[0].tolist() == pytest.approx([1 + expm1(0.5), 0.0], abs=1e-12)
