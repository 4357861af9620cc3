"""Masked importance sampling of whole responses: kappa = rho inside [low, cap], else 0 (TRL's sequence_mask).

A masked response stays in the denominator of the mean; it does not make the others count more.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log
from typing import TYPE_CHECKING

from delaysim.estimators.base import GroupBatch, Recipe, on_tokens

if TYPE_CHECKING:
    from torch import Tensor

SCOPE = "response"
LEVEL = "trajectory"
NEEDS = ()
DIAL = ("cap",)
PUBLISHED = Recipe("group_norm", "token_mean")


@dataclass
class Params:
    """TRL 1.16: cap = 3, no lower bound. `eps` sets cap = 1 + eps."""

    name: str = "mis"
    low: float = 0.0
    """A response with rho below this is dropped; 0 = no lower bound."""
    cap: float = 3.0
    """A response with rho above this is dropped."""


def mass_bound(params: Params) -> float:
    """Largest group mean of kappa on one-token responses; no weight kappa/rho exceeds 1."""
    return params.cap


def coefficients(batch: GroupBatch, params: Params) -> Tensor:
    """Kappa [B, G, T] = rho inside the band, else 0; masked before exp."""
    low = log(params.low) if params.low > 0 else -inf
    kept = (batch.log_rho >= low) & (batch.log_rho <= log(params.cap))
    return on_tokens(batch, batch.log_rho.clamp(max=log(params.cap)).exp() * kept)
