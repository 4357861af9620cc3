"""The KL penalty: its gradient in the learner, what it is the gradient of, where its reference comes from."""

import copy
from dataclasses import replace
from math import exp, expm1

import pytest
import torch
from estimators.batches import batch_of
from learners import (
    autograd,
    close,
    each,
    gradient_of,
    log_probabilities,
    log_ratio,
    make,
    moved,
    stale_groups,
    tiny_base,
    weights_of,
)
from stopping import finished, stopped_and_resumed

from delaysim.estimators.base import LOG_KAPPA_BOUND
from delaysim.estimators.penalty import PENALTIES, penalty
from delaysim.policy.rollout import Group

AGGREGATIONS = {
    "seq_mean_token_mean": lambda t, tokens: 1 / t / 12,
    "seq_mean_token_sum": lambda t, tokens: 1 / 12,
    "token_mean": lambda t, tokens: 1 / tokens,
    "fixed_length": lambda t, tokens: 1 / 12 / 12,
}


@pytest.fixture(scope="module")
def base(base_cache):
    return tiny_base()


@pytest.fixture(scope="module")
def other(base):
    """The base after some training, as it were."""
    return moved(base)


@pytest.fixture(scope="module")
def groups(base):
    return stale_groups(base)


def silent(groups):
    """The same with equal rewards: no advantage anywhere, the penalty alone remains."""
    return [Group(g.group, g.version, g.prompt, g.responses, (1.0,) * 4) for g in groups]


def put(model, weights):
    with torch.no_grad():
        for mine, theirs in zip(model.parameters(), weights.parameters(), strict=True):
            mine.copy_(theirs)


def updated(base, other, groups, **settings):
    """The gradient of a learner made around the base whose weights then became `other`."""
    model = copy.deepcopy(base)
    learner = make(model, **settings)
    put(model, other)
    learner.update(7, groups)
    return gradient_of(model)


def penalties(kind, x):
    """As written in the papers, with x = reference - current."""
    return x**2 / 2 if kind == "k2" else x.exp() - x - 1


def penalty_loss(model, frozen, groups, kind, aggregation):
    tokens, loss = sum(sum(group.lengths) for group in groups), torch.zeros(())
    for _, _, group, response in each(groups):
        logp = log_probabilities(model, group, response)
        x = log_probabilities(frozen, group, response).detach() - logp
        loss = loss + penalties(kind, x).sum() * AGGREGATIONS[aggregation](len(x), tokens)
    return loss


# in the learner


@pytest.mark.parametrize("kind", PENALTIES)
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_its_gradient_is_autograds(base, other, groups, kind, aggregation):
    found = updated(base, other, silent(groups), kl=0.3, kl_penalty=kind, aggregation=aggregation)
    wanted = 0.3 * autograd(penalty_loss(other, base, groups, kind, aggregation), other)
    assert close(found, wanted, 2e-5)


@pytest.mark.parametrize("kind", PENALTIES)
def test_it_adds_to_the_estimators_gradient_and_no_ratio_weights_it(base, other, groups, kind):
    """Of plain importance sampling, whose own part is written out here as well."""
    loss = 0.3 * penalty_loss(other, base, groups, kind, "seq_mean_token_mean")
    for _, i, group, response in each(groups):
        rewards = torch.tensor(group.rewards)
        a = (rewards[i] - rewards.mean()) / (rewards.std() + 1e-4) * (rewards.max() > rewards.min())
        rho = log_ratio(other, group, response).sum().exp().float()
        loss = loss - rho * a * log_probabilities(other, group, response).mean() / 12
    assert close(updated(base, other, groups, kl=0.3, kl_penalty=kind), autograd(loss, other), 2e-5)
    staler = stale_groups(base, spread=0.1)
    both = [updated(base, other, silent(g), kl=0.3, kl_penalty=kind) for g in (groups, staler)]
    assert close(both[0], both[1], 1e-6)


def test_on_the_base_itself_there_is_nothing_to_penalise(base, groups):
    plain, held = copy.deepcopy(base), copy.deepcopy(base)
    one, two = make(plain), make(held, kl=5.0)
    one.update(7, groups)
    two.update(7, groups)
    assert torch.equal(weights_of(plain), weights_of(held))
    one.update(8, groups)
    two.update(8, groups)
    assert not torch.allclose(weights_of(plain), weights_of(held), atol=1e-4)


def test_the_reference_stays_the_base(base, groups):
    """After three updates the next gradient is still towards the weights the learner was made with."""
    model = copy.deepcopy(base)
    learner = make(model, kl=0.5, kl_penalty="k3")
    for update in (7, 8, 9):
        learner.update(update, groups)
    now = copy.deepcopy(model)
    learner.update(10, silent(groups))
    wanted = 0.5 * autograd(penalty_loss(now, base, groups, "k3", "seq_mean_token_mean"), now)
    assert close(gradient_of(model), wanted, 5e-5)


def test_every_step_on_a_mini_batch_has_its_penalty(base, other, groups):
    """The second of two steps, from where the first one led."""
    first, both = copy.deepcopy(base), copy.deepcopy(base)
    learners = make(first, kl=0.5), make(both, kl=0.5, updates_per_batch=2)
    for model, learner in zip((first, both), learners, strict=True):
        put(model, other)
        learner.update(7, silent(groups))
    wanted = 0.5 * autograd(penalty_loss(first, base, groups, "k3", "seq_mean_token_mean"), first)
    assert close(gradient_of(both), wanted, 5e-5)


# what it is the gradient of


def enumerated(logits, reference):
    """Every action of a softmax as a response of one token."""
    logp = logits.log_softmax(-1).detach().view(1, -1, 1)
    ones = torch.ones_like(logp)
    batch = batch_of(logp, logp, ones, torch.zeros(1, logp.shape[1], dtype=torch.float64), delays=[0])
    return replace(batch, reference=reference.log_softmax(-1).view(1, -1, 1))


@pytest.mark.parametrize("actions", [2, 3, 6])
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", PENALTIES)
def test_on_policy_its_mean_gradient_is_that_of_a_divergence(actions, seed, kind):
    """k2: minus that of KL(policy || reference); k3: minus that of KL(reference || policy). Exact sums."""
    rng = torch.Generator().manual_seed(seed)
    logits, reference = (torch.randn(actions, generator=rng, dtype=torch.float64) for _ in range(2))
    logits.requires_grad_()
    coefficients = penalty(enumerated(logits, reference), kind).flatten()
    p, q = logits.log_softmax(-1), reference.log_softmax(-1)
    divergence = (p.exp() * (p - q)).sum() if kind == "k2" else (q.exp() * (q - p)).sum()
    (wanted,) = torch.autograd.grad(divergence, logits)
    p = logits.log_softmax(-1)
    (mean,) = torch.autograd.grad((p.exp().detach() * coefficients * p).sum(), logits)
    assert float(wanted.norm()) > 0.01
    assert torch.allclose(mean, -wanted, atol=1e-14)


def test_coefficients_by_hand():
    """x = .5, -.25 and 0; nothing on padding, whatever stands there."""
    logp = torch.tensor([[[-2.0, -1.0, 0.0], [-3.0, 0.0, 0.0]]], dtype=torch.float64)
    mask = torch.tensor([[[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]]], dtype=torch.float64)
    reference = torch.tensor([[[-1.5, -1.25, 9.0], [-3.0, 9.0, 9.0]]], dtype=torch.float64)
    batch = batch_of(logp, logp, mask, torch.zeros(1, 2, dtype=torch.float64), reference=reference)
    assert penalty(batch, "k2").flatten().tolist() == [0.5, -0.25, 0, 0, 0, 0]
    found = penalty(batch, "k3").flatten().tolist()
    assert found == pytest.approx([expm1(0.5), expm1(-0.25), 0, 0, 0, 0], rel=1e-14)


def test_coefficients_far_from_the_reference_are_finite():
    logp = torch.tensor([[[-1e4, -1.0], [-1.0, -31.0]]], dtype=torch.float64)
    reference = torch.tensor([[[-1.0, -1e4], [-1.0, -1.0]]], dtype=torch.float64)
    batch = batch_of(logp, logp, torch.ones_like(logp), torch.zeros(1, 2, dtype=torch.float64), reference=reference)
    assert penalty(batch, "k3").flatten().tolist() == pytest.approx([expm1(LOG_KAPPA_BOUND), -1.0, 0.0, exp(30) - 1])
    assert penalty(batch, "k2").flatten().tolist() == [9999.0, -9999.0, 0.0, 30.0]


# in a run


@pytest.mark.slow
def test_a_stopped_run_goes_on_towards_the_same_reference(base_cache, tmp_path, monkeypatch):
    """The base, not the weights it resumed from; with two steps a mini-batch besides."""
    chosen = ("D=3", "updates=6", "lr=3e-3", "learner.kl=0.1", "learner.updates_per_batch=2", "estimator=decoupled")
    whole = finished(chosen, tmp_path / "whole")
    assert stopped_and_resumed(chosen, tmp_path / "run", monkeypatch) == whole
