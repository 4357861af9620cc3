"""VESPO (2602.10693; formula as in TRL 1.16): a smooth weight of the trajectory ratio.

kappa = phi(rho) = rho^k * exp(lambda * (1 - rho)). phi(1) = 1, its peak is at k / lambda; the advantage's sign
chooses k and lambda.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from delaysim.estimators.base import GroupBatch, Recipe, on_tokens

if TYPE_CHECKING:
    from torch import Tensor

SCOPE = "response"
LEVEL = "trajectory"
NEEDS = ("advantages",)
DIAL = ()
PUBLISHED = Recipe("group_norm", "token_mean")


@dataclass
class Params:
    """Published: k 2, lambda 3 where A >= 0; k 3, lambda 2 elsewhere."""

    name: str = "vespo"
    k_pos: float = 2.0
    """Power of rho where A >= 0."""
    lambda_pos: float = 3.0
    """Decay where A >= 0."""
    k_neg: float = 3.0
    """Power of rho where A < 0."""
    lambda_neg: float = 2.0
    """Decay where A < 0."""


def coefficients(batch: GroupBatch, params: Params) -> Tensor:
    """Kappa [B, G, T] = phi(rho), in log space; beyond e^300 it is 0 anyway."""
    good = (batch.advantages >= 0).to(batch.mask)
    k = params.k_neg + (params.k_pos - params.k_neg) * good
    decay = params.lambda_neg + (params.lambda_pos - params.lambda_neg) * good
    log_rho = batch.log_rho.clamp(max=300)
    return on_tokens(batch, (k * log_rho + decay * (1 - log_rho.exp())).exp())
