"""VCPO's baseline and step scale as formulas: pinned values, least variance, what is exact."""

from dataclasses import replace
from math import exp, sqrt

import pytest
import torch
from estimators.batches import pinned, random_batch

from delaysim.estimators import make
from delaysim.estimators.base import on_tokens
from delaysim.rules import discover, none, vcpo

SQUARED_NORMS = torch.tensor([[1.0, 4.0, 0.25, 2.25]], dtype=torch.float64)
LOG_RHO = (0.35, -0.2, 1.5, -1.0)
WEIGHTS = ("is", {}), ("tis", {"cap": 2.0}), ("reinforce", {})


def baseline(batch, kappa, norms, form="paper"):
    return vcpo.optimal_baseline(batch, kappa, norms, form)


def test_every_rule_is_found_and_knows_its_name():
    assert {name: module.Params().name for name, module in discover().items()} == {
        "gac": "gac",
        "none": "none",
        "vcpo": "vcpo",
    }
    assert not any(hasattr(none, name) for name in ("advantages", "step_scale", "direction"))


@pytest.mark.parametrize(("name", "value"), [("is", 0.231342), ("reinforce", 0.433333)])
def test_pinned_optimal_baselines(name, value):
    """|S| = 1, 2, .5, 1.5 and R = 1, 0, 0, 1: with weights rho, and with none."""
    kappa = make(name).coefficients(pinned())
    assert float(baseline(pinned(), kappa, SQUARED_NORMS)) == pytest.approx(value, abs=5e-7)


@pytest.mark.parametrize(("name", "settings"), WEIGHTS)
@pytest.mark.parametrize(("form", "power"), [("paper", 0), ("repository", 2)])
def test_both_forms_are_their_formulas(name, settings, form, power):
    """Weights w^2 |S|^2 in the paper; the repository multiplies by the unclipped rho^2 once more."""
    w = {"is": map(exp, LOG_RHO), "tis": (min(exp(x), 2) for x in LOG_RHO), "reinforce": [1.0] * 4}[name]
    parts = [k**2 * exp(x) ** power * s for k, x, s in zip(w, LOG_RHO, (1, 4, 0.25, 2.25), strict=True)]
    wanted = (parts[0] + parts[3]) / sum(parts)
    kappa = make(name, **settings).coefficients(pinned())
    assert float(baseline(pinned(), kappa, SQUARED_NORMS, form)) == pytest.approx(wanted, rel=1e-12)


def rewarded(seed, spread=0.8):
    """A random batch with real-valued rewards, and squared norms for it."""
    rng = torch.Generator().manual_seed(1000 + seed)
    batch = random_batch(seed, spread=spread)
    rewards = torch.randn(batch.rewards.shape, generator=rng, dtype=torch.float64)
    return replace(batch, rewards=rewards), torch.rand(rewards.shape, generator=rng, dtype=torch.float64) + 0.01


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("name", "settings"), WEIGHTS)
def test_no_other_baseline_has_less_variance(seed, name, settings):
    """E|w (R - b) S|^2 over the group as a function of b: found again on a grid of b around it, and at a distance."""
    batch, norms = rewarded(seed)
    kappa = make(name, **settings).coefficients(batch)
    w, b = kappa[:, :, 0], baseline(batch, kappa, norms)

    def second_moment(at):
        return (w**2 * (batch.rewards - at) ** 2 * norms).mean(1, keepdim=True)

    least = second_moment(b)
    for step in (1e-4, 1e-2, 0.3, 2.0):
        assert (second_moment(b + step) > least).all()
        assert (second_moment(b - step) > least).all()
    grid = torch.linspace(-3, 3, 60_001, dtype=torch.float64)
    values = (w**2 * norms)[0] @ (batch.rewards[0][:, None] - grid) ** 2
    assert float(grid[values.argmin()]) == pytest.approx(float(b[0]), abs=1e-4)


@pytest.mark.parametrize("value", [0.0, 0.1, 0.7, 1.0])
@pytest.mark.parametrize("by_std", [True, False])
def test_equal_rewards_have_no_advantage_at_all(value, by_std):
    batch, norms = rewarded(0)
    rewards = torch.cat([torch.full_like(batch.rewards[:1], value), batch.rewards[1:]])
    kappa = make("is").coefficients(batch)
    found = vcpo.advantages(replace(batch, rewards=rewards), kappa, norms, vcpo.Params(by_std=by_std))
    assert not found[0].any()
    assert found[1:].all()


@pytest.mark.parametrize("form", ["paper", "repository"])
def test_where_every_weight_is_0_the_baseline_is_the_plain_mean(form):
    batch, norms = rewarded(1)
    kappa = make("is").coefficients(batch)
    kappa[1] = 0
    found = baseline(batch, kappa, norms, form)[:, 0]
    assert float(found[1]) == pytest.approx(float(batch.rewards[1].mean()), rel=1e-12)
    assert float(found[0]) != pytest.approx(float(batch.rewards[0].mean()), abs=1e-3)
    nothing = baseline(batch, make("is").coefficients(batch), 0 * norms, form)
    assert torch.allclose(nothing, batch.rewards.mean(1, keepdim=True), atol=1e-14)


@pytest.mark.parametrize("by_std", [True, False])
def test_advantages_are_rewards_minus_baseline_over_the_population_deviation(by_std):
    batch, norms = rewarded(2)
    kappa = make("tis", cap=2.0).coefficients(batch)
    found = vcpo.advantages(batch, kappa, norms, vcpo.Params(by_std=by_std))
    for rewards, b, row in zip(
        batch.rewards.tolist(), baseline(batch, kappa, norms)[:, 0].tolist(), found, strict=True
    ):
        mean = sum(rewards) / 5
        sd = sqrt(sum((r - mean) ** 2 for r in rewards) / 5) if by_std else 1.0
        assert row.tolist() == pytest.approx([(r - b) / sd for r in rewards], rel=1e-12)


def test_with_equal_weights_and_norms_the_baseline_is_the_group_mean():
    """And at delay 0 with unequal norms it is not: VCPO is not GRPO there."""
    batch, norms = rewarded(3, spread=0.0)
    kappa = make("tis").coefficients(batch)
    assert torch.equal(kappa, batch.mask)
    mean = batch.rewards.mean(1, keepdim=True)
    assert torch.allclose(baseline(batch, kappa, torch.full_like(norms, 2.5)), mean, atol=1e-12)
    assert float((baseline(batch, kappa, norms) - mean).abs().min()) > 1e-3


PINNED_ESS = 0.548252


@pytest.mark.parametrize(("scale", "value"), [("sqrt", sqrt(PINNED_ESS)), ("linear", PINNED_ESS), ("off", 1.0)])
def test_pinned_step_scales(scale, value):
    kappa = make("tis", cap=2.0).coefficients(pinned())
    assert vcpo.step_scale(pinned(), kappa, vcpo.Params(scale=scale)) == pytest.approx(value, abs=1e-6)


def test_pinned_step_scale_of_what_is_kept():
    """Capped at 2 the effective share is .777643; without a cap it is that of rho."""
    params = vcpo.Params(scale="linear", ess="kept")
    for cap, value in ((2.0, 0.777643), (8.0, PINNED_ESS)):
        kappa = make("tis", cap=cap).coefficients(pinned())
        assert vcpo.step_scale(pinned(), kappa, params) == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize(("base", "value"), [(0.25, 1.0), (0.5, 1.0), (0.7, PINNED_ESS / 0.7), (2.0, PINNED_ESS / 2)])
def test_the_step_is_whole_from_the_base_on(base, value):
    kappa = make("is").coefficients(pinned())
    linear, root = (vcpo.step_scale(pinned(), kappa, vcpo.Params(scale=s, base=base)) for s in ("linear", "sqrt"))
    assert linear == pytest.approx(value, abs=2e-6)
    assert root == pytest.approx(sqrt(linear), rel=1e-12)


@pytest.mark.parametrize("scale", ["sqrt", "linear"])
@pytest.mark.parametrize("kind", ["raw", "kept"])
def test_the_step_is_whole_at_delay_0(scale, kind):
    batch = random_batch(4, spread=0.0)
    kappa = make("tis").coefficients(batch)
    assert vcpo.step_scale(batch, kappa, vcpo.Params(scale=scale, ess=kind)) == pytest.approx(1.0, rel=1e-12)


def test_the_effective_share_is_of_the_whole_mini_batch():
    """Not a mean over groups: two groups of equal ratios inside but unequal between have less than 1."""
    batch = random_batch(5, b=2, g=4, t=3, spread=0.0)
    behaviour = (
        batch.logp
        - torch.tensor([0.0, 1.2], dtype=torch.float64).view(2, 1, 1) / batch.lengths.unsqueeze(-1) * batch.mask
    )
    batch = replace(batch, behaviour=behaviour)
    kappa = on_tokens(batch, batch.rho)
    wanted = (4 + 4 * exp(1.2)) ** 2 / 8 / (4 + 4 * exp(2.4))
    assert vcpo.step_scale(batch, kappa, vcpo.Params(scale="linear")) == pytest.approx(wanted, rel=1e-12)
