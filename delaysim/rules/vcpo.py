"""VCPO (2602.17616): the off-policy optimal baseline, and a step that shrinks with the effective sample size.

With `estimator=tis` (weights min(rho, 8)) this is the whole method. The baseline of a group is the mean of its rewards
weighted by w^2 * |grad log pi(response)|^2, the one that minimises the variance of the weighted gradient. The paper
takes w as the weight that enters the gradient; the repository's code multiplies the norm of the already weighted
gradient by w^2 again: kept^2 * rho^2. Not GRPO at delay 0: the baseline is not the group mean there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from delaysim.estimators.base import GroupBatch
from delaysim.measures import ess, kept

if TYPE_CHECKING:
    from torch import Tensor

CHOICES = {"baseline": ("paper", "repository", "off"), "scale": ("sqrt", "linear", "off"), "ess": ("raw", "kept")}


@dataclass
class Params:
    """Published: sqrt rule, base 1, unclipped weights in the effective sample size."""

    name: str = "vcpo"
    baseline: str = "paper"
    """paper | repository | off (the shared advantage)."""
    by_std: bool = True
    """Divide by the group's population standard deviation of rewards."""
    scale: str = "sqrt"
    """sqrt | linear | off: how the step follows the effective sample size."""
    base: float = 1.0
    """Effective share of the mini-batch at which the step is whole."""
    ess: str = "raw"
    """raw | kept: effective sample size of rho, or of what the estimator keeps."""


def advantages(batch: GroupBatch, kappa: Tensor, squared_norms: Tensor, params: Params) -> Tensor:
    """[B, G] rewards minus the optimal baseline; exactly 0 where a group's rewards are all equal."""
    rewards = batch.rewards
    mixed = rewards.amax(1, keepdim=True) > rewards.amin(1, keepdim=True)
    centred = rewards - optimal_baseline(batch, kappa, squared_norms, params.baseline)
    if params.by_std:
        centred = centred / rewards.std(1, keepdim=True, unbiased=False).clamp(min=1e-8)
    return centred * mixed


def optimal_baseline(batch: GroupBatch, kappa: Tensor, squared_norms: Tensor, form: str) -> Tensor:
    """[B, 1] mean reward weighted by w^2 |S|^2; the plain mean where every weight is 0."""
    weight = kept(batch, kappa) ** 2 * squared_norms
    if form == "repository":
        weight = weight * batch.rho**2
    total = weight.sum(1, keepdim=True)
    plain = batch.rewards.mean(1, keepdim=True)
    return (weight * batch.rewards).sum(1, keepdim=True).div(total).where(total > 0, plain)


def step_scale(batch: GroupBatch, kappa: Tensor, params: Params) -> float:
    """min(1, ESS / base)^(1/2), the effective share of the mini-batch's responses in log space."""
    if params.scale == "off":
        return 1.0
    log_w = batch.log_rho if params.ess == "raw" else kept(batch, kappa).clamp(min=1e-300).log()
    return float(min(1.0, float(ess(log_w.flatten())) / params.base) ** (0.5 if params.scale == "sqrt" else 1.0))
