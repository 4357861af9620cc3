"""Update rules inside the learner: gradient, step and memory against references, one response at a time in autograd."""

import copy
from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch
from learners import (
    REWARDS,
    autograd,
    close,
    each,
    gradient_of,
    log_probabilities,
    log_ratio,
    make,
    moments,
    rule,
    stale_groups,
    tiny_base,
    weights_of,
)
from stopping import finished, stopped_and_resumed

from delaysim.estimators.interface import Estimator
from delaysim.train.diagnostics import update_row
from delaysim.train.gradient import Rule


@pytest.fixture(scope="module")
def base(base_cache):
    return tiny_base()


@pytest.fixture(scope="module")
def groups(base):
    return stale_groups(base)


@pytest.fixture(scope="module")
def norms(base, groups):
    """[3, 4] squared norm of each response's grad log pi, by autograd."""
    found = torch.zeros(3, 4, dtype=torch.float64)
    for b, i, group, response in each(groups):
        found[b, i] = autograd(log_probabilities(base, group, response).sum(), base).double().square().sum()
    return found


@pytest.fixture(scope="module")
def rho(base, groups):
    """[3, 4] trajectory ratios."""
    return torch.stack([torch.stack([log_ratio(base, g, r).sum().exp() for r in g.responses]) for g in groups])


# VCPO


def norms_seen(base, groups, **options):
    """The squared norms a rule is given."""
    seen = []

    def keep(batch, _kappa, norms, _params):
        seen.append(norms)
        return batch.advantages

    make(copy.deepcopy(base), rule=Rule(SimpleNamespace(advantages=keep), None), **options).update(7, groups)
    return seen[0]


@pytest.mark.parametrize("options", [{}, {"bucket": 1}, {"pack": 0}])
def test_squared_norms_are_autograds_and_0_where_rewards_are_equal(base, groups, norms, options):
    seen = norms_seen(base, groups, **options)
    assert torch.allclose(seen[[0, 2]], norms[[0, 2]], rtol=1e-4)
    assert not seen[1].any()
    assert float(norms.min()) > 1e-3


def optimal(weights, norms, rewards):
    return [float((w * n) @ r / (w @ n)) for w, n, r in zip(weights, norms, rewards, strict=True)]


def reference_advantages(kept, rho, norms, form, by_std):
    rewards = torch.tensor(REWARDS, dtype=torch.float64)
    weights = kept**2 * (rho**2 if form == "repository" else 1)
    centred = rewards - torch.tensor(optimal(weights, norms, rewards), dtype=torch.float64)[:, None]
    centred[1] = 0
    deviation = (rewards - rewards.mean(1, keepdim=True)).square().mean(1, keepdim=True).sqrt()
    return centred / deviation.clamp(min=1e-8) if by_std else centred


def reference_gradient(model, groups, kept, advantages):
    """Of -(mean over responses of kept * A * mean log pi)."""
    loss = torch.zeros(())
    for b, i, group, response in each(groups):
        loss = loss - float(kept[b, i] * advantages[b, i]) * log_probabilities(model, group, response).mean() / 12
    return autograd(loss, model)


@pytest.mark.parametrize("form", ["paper", "repository"])
@pytest.mark.parametrize("by_std", [True, False])
@pytest.mark.parametrize("cap", [1.5, 1e6])
def test_vcpo_changes_the_update_as_its_formulas_say(base, groups, rho, norms, form, by_std, cap):
    model, kept = copy.deepcopy(base), rho.clamp(max=cap)
    outcome = make(model, "tis", {"cap": cap}, rule("vcpo", baseline=form, by_std=by_std)).update(7, groups)
    wanted = reference_advantages(kept, rho, norms, form, by_std)
    assert torch.allclose(outcome.batch.advantages, wanted, rtol=1e-4, atol=1e-5)
    assert not outcome.batch.advantages[1].any()
    assert close(gradient_of(model), reference_gradient(base, groups, kept, wanted), 2e-5)
    plain = copy.deepcopy(base)
    make(plain, "tis", {"cap": cap}).update(7, groups)
    assert not close(gradient_of(model), gradient_of(plain), 1e-2)


@pytest.mark.parametrize(
    ("settings", "power", "capped"),
    [({}, 0.5, False), ({"scale": "linear"}, 1.0, False), ({"ess": "kept"}, 0.5, True), ({"base": 0.9}, 0.5, False)],
)
def test_vcpo_shortens_the_step_by_the_effective_sample_size(base, groups, rho, settings, power, capped):
    """The learning rate of this step alone: the next one, at delay 0, is whole again."""
    learner = make(copy.deepcopy(base), "tis", {"cap": 1.5}, rule("vcpo", baseline="off", **settings), warmup=20)
    w = (rho.clamp(max=1.5) if capped else rho).flatten()
    ess = min(1.0, float(w.sum() ** 2 / (w**2).sum()) / 12 / settings.get("base", 1.0))
    assert 0.3 < ess < 0.99
    outcome = learner.update(7, groups)
    assert outcome.lr == pytest.approx(1e-2 * 8 / 20 * ess**power, rel=1e-4)
    assert update_row(outcome, groups)["lr"] == outcome.lr
    fresh = [type(g)(g.group, 8, g.prompt, g.responses, g.rewards) for g in groups]
    assert learner.update(8, fresh).lr == pytest.approx(1e-2 * 9 / 20, rel=1e-12)


def test_the_scaled_rate_is_the_one_that_steps(base, groups):
    """A first AdamW step has length lr in every weight that has a gradient."""
    model = copy.deepcopy(base)
    outcome = make(model, "tis", rule=rule("vcpo")).update(7, groups)
    large = gradient_of(model).abs() > 1e-4
    steps = (weights_of(model) - weights_of(base)).abs()[large]
    assert int(large.sum()) > 1000
    assert float((steps / outcome.lr - 1).abs().max()) < 2e-3
    assert outcome.lr < 0.99e-2


def test_vcpo_with_nothing_on_is_no_rule(base, groups):
    plain, off = copy.deepcopy(base), copy.deepcopy(base)
    one, other = make(plain, "tis"), make(off, "tis", rule=rule("vcpo", baseline="off", scale="off"))
    for update in range(7, 10):
        one.update(update, groups)
        other.update(update, groups)
    assert torch.equal(weights_of(plain), weights_of(off))
    assert not torch.equal(weights_of(plain), weights_of(base))


def test_an_estimator_sees_the_shared_advantages_in_every_step(base, groups):
    """And the rule replaces them anew: what the second step trained on is not what the first did."""
    seen, outcomes = [], []

    def coefficients(batch, _params):
        seen.append(batch.advantages)
        return batch.mask * batch.ratio

    for steps in (1, 2):
        estimator = Estimator("seen", SimpleNamespace(coefficients=coefficients), None)
        learner = make(copy.deepcopy(base), estimator, rule=rule("vcpo"), updates_per_batch=steps)
        outcomes.append(learner.update(7, groups).batch)
    assert len(seen) == 3
    assert all(torch.equal(advantages, seen[0]) for advantages in seen)
    assert float(seen[0].sum(1).abs().max()) < 1e-9
    first, second = (batch.advantages for batch in outcomes)
    assert float(first.sum(1).abs().min()) == 0.0 < float(first[[0, 2]].sum(1).abs().min())
    assert not torch.allclose(first[[0, 2]], second[[0, 2]], atol=1e-3)


# the cosine with the previous gradient


def is_gradient(model, groups):
    """Plain importance sampling's, by autograd."""
    loss = torch.zeros(())
    for group in groups:
        rewards = torch.tensor(group.rewards)
        advantages = (rewards - rewards.mean()) / (rewards.std() + 1e-4) * (rewards.max() > rewards.min())
        for response, a in zip(group.responses, advantages, strict=True):
            logp = log_probabilities(model, group, response)
            loss = loss - log_ratio(model, group, response).sum().exp().float() * a * logp.mean() / 12
    return autograd(loss, model)


def angle(one, other):
    return float(one.double() @ other.double() / (one.double().norm() * other.double().norm()))


def test_grad_cos_is_of_two_consecutive_gradients(base, groups):
    """Before clipping, whatever the rule; there is none at the first update."""
    model = copy.deepcopy(base)
    learner = make(model, clip=0.05, lr=3e-3)
    gradients, found = [], []
    for update, seed in ((7, 0), (8, 1), (9, 0), (10, 2)):
        batch = stale_groups(base, seed)
        gradients.append(is_gradient(model, batch))
        outcome = learner.update(update, batch)
        found.append(outcome.grad_cos)
        assert outcome.grad_norm == pytest.approx(float(gradients[-1].double().norm()), rel=1e-4)
    assert found[0] is None
    assert found[1:] == pytest.approx([angle(a, b) for a, b in pairwise(gradients)], abs=2e-5)
    assert max(abs(c) for c in found[1:]) > 0.02


# GAC


def reference_gac(gradient, previous, low, between):
    """By hand in double precision; between low and 1 nothing is skipped here."""
    c, unit = angle(gradient, previous), previous.double() / previous.double().norm()
    if c <= low:
        return gradient.double()
    across = gradient.double() - gradient.double() @ unit * unit
    return across if between == "remove" else across + low / (1 - low**2) ** 0.5 * across.norm() * unit


@pytest.mark.parametrize("between", ["remove", "floor"])
def test_gac_steps_along_the_projected_gradient(base, between):
    model = copy.deepcopy(base)
    learner = make(model, rule=rule("gac", low=0.01, high=1.0, between=between), lr=3e-3)
    previous, projected = None, 0
    for update, seed in enumerate((0, 1, 0, 2, 0), 7):
        batch = stale_groups(base, seed)
        raw = is_gradient(model, batch)
        wanted = raw.double() if previous is None else reference_gac(raw, previous, 0.01, between)
        outcome = learner.update(update, batch)
        projected += not torch.equal(wanted, raw.double())
        assert close(gradient_of(model).double(), wanted, 3e-5)
        assert outcome.grad_norm == pytest.approx(float(wanted.norm()), rel=1e-4)
        previous = raw
    assert projected >= 1


def test_a_skipped_step_leaves_weights_and_moments_as_they_were(base, groups):
    model = copy.deepcopy(base)
    learner = make(model, rule=rule("gac"), lr=1e-5)
    first = learner.update(7, groups)
    weights, before = weights_of(model), moments(learner)
    second = learner.update(8, groups)
    assert second.grad_cos > 0.99
    assert (first.lr, second.lr) == (1e-5, 0.0)
    assert update_row(second, groups)["lr"] == 0.0
    assert second.grad_norm == pytest.approx(first.grad_norm, rel=0.05)
    assert torch.equal(weights_of(model), weights)
    after = moments(learner)
    assert after.keys() == before.keys()
    changed = [name for name in before if not torch.equal(before[name], after[name])]
    assert changed == ["previous_gradient"]


def test_a_skipped_step_does_not_hold_back_the_next(base, groups):
    """After it, an opposite gradient steps with the full rate and the moments' count is of whole steps."""
    learner = make(copy.deepcopy(base), rule=rule("gac"), lr=1e-5)
    learner.update(7, groups)
    assert learner.update(8, groups).lr == 0.0
    opposite = [type(g)(g.group, g.version, g.prompt, g.responses, tuple(1 - r for r in g.rewards)) for g in groups]
    outcome = learner.update(9, opposite)
    assert outcome.grad_cos == pytest.approx(-1.0, abs=1e-3)
    assert outcome.lr == 1e-5
    assert {float(v) for name, v in moments(learner).items() if name.endswith("/step")} == {2.0}


def twins(base, groups, **settings):
    """A learner after two updates, and one that went on from its state."""
    chosen = rule("gac", low=0.0, high=1.0, between="floor", **settings)
    first = make(copy.deepcopy(base), rule=chosen, lr=1e-3)
    for update in (7, 8):
        first.update(update, groups)
    return first, make(copy.deepcopy(first.model), rule=chosen, lr=1e-3)


@pytest.mark.parametrize("previous", ["raw", "applied"])
def test_the_previous_gradient_is_part_of_the_state(base, groups, previous):
    one, other = twins(base, groups, previous=previous)
    other.load_optimiser_state(moments(one))
    for update in (9, 10):
        cosines = [learner.update(update, groups).grad_cos for learner in (one, other)]
        assert cosines[0] == cosines[1] is not None
        assert torch.equal(weights_of(one.model), weights_of(other.model))


def test_without_it_the_next_update_would_be_another(base, groups):
    one, other = twins(base, groups)
    other.load_optimiser_state({k: v for k, v in moments(one).items() if k != "previous_gradient"})
    assert other.update(9, groups).grad_cos is None
    assert one.update(9, groups).grad_cos > 0.1
    assert not torch.equal(weights_of(one.model), weights_of(other.model))


@pytest.mark.slow
def test_a_stopped_run_goes_on_with_its_previous_gradient(base_cache, tmp_path, monkeypatch):
    chosen = ("D=3", "updates=6", "rule=gac", "rule.low=0", "rule.above=remove")
    whole = finished(chosen, tmp_path / "whole")
    assert stopped_and_resumed(chosen, tmp_path / "run", monkeypatch) == whole
