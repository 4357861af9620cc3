"""GMC-GRPO: group-mass capping (2610.01896, Proposition 2).

All trajectory ratios of a group are scaled by one factor, alpha = min(1, (1+eps) / mean rho), so the group's mean
ratio is min(mean rho, 1+eps) and the direction of its gradient is that of plain importance sampling. alpha is
detached: a gradient through it would add a self-normalising baseline. A single response may keep up to G*(1+eps).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, log1p
from typing import TYPE_CHECKING

from delaysim.estimators.base import GroupBatch, Recipe, bounded_exp, on_tokens

if TYPE_CHECKING:
    from torch import Tensor

SCOPE = "group"
LEVEL = "trajectory"
NEEDS = ()
DIAL = ("eps",)
PUBLISHED = Recipe("group_norm", "seq_mean_token_sum")


@dataclass
class Params:
    """Published: eps = 0.28."""

    name: str = "gmc"
    eps: float = 0.28
    """The group's mean ratio is capped at 1 + eps."""


def mass_bound(params: Params) -> float:
    """Largest group mean of kappa on one-token responses; no weight kappa/rho exceeds 1."""
    return 1 + params.eps


def coefficients(batch: GroupBatch, params: Params) -> Tensor:
    """Kappa [B, G, T] = alpha * rho, computed in log space."""
    log_mean = batch.log_rho.logsumexp(1, keepdim=True) - log(batch.log_rho.shape[1])
    log_alpha = (log1p(params.eps) - log_mean).clamp(max=0)
    return on_tokens(batch, bounded_exp(batch.log_rho + log_alpha))
