"""Losses around a proximal policy and M2PO's budgets: pinned values, closed forms, and what the budget promises."""

from dataclasses import replace

import pytest
import torch
from estimators.batches import kappa, one_token, pinned, pinned_as_groups, random_batch

from delaysim.estimators.base import aggregation_weights


def decoupled_loss(batch, anchor, weight, cap=5.0):
    """AReaL's: the value of -(weight * min(u A, clip(u) A)) over all tokens, the original count below."""
    u = (batch.logp - anchor).exp()
    a = batch.advantage
    inner = torch.minimum(u * a, u.clamp(0.8, 1.2) * a)
    behind = (anchor - batch.behaviour).exp()
    held = behind * (behind <= cap) if weight else torch.ones_like(behind)
    return float(-(held * inner * aggregation_weights(batch.mask, "token_mean")).sum())


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
