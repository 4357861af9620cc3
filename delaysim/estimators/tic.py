"""TIC-GRPO as GMC-GRPO's paper uses it: the trajectory ratio, dropped whole above a threshold.

kappa = rho * 1{rho <= 1+eps} for either sign of the advantage (2508.02833; usage in 2610.01896, Definition 1).
Equals the derivative of min(rho, 1+eps) * A, which passes at equality. Its own length-corrected advantage is
`learner.advantage=length_norm`, part of `recipe=published`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log1p
from typing import TYPE_CHECKING

from delaysim.estimators.base import GroupBatch, Recipe, on_tokens

if TYPE_CHECKING:
    from torch import Tensor

SCOPE = "response"
LEVEL = "trajectory"
NEEDS = ()
DIAL = ("eps",)
PUBLISHED = Recipe("length_norm", "seq_mean_token_sum")


@dataclass
class Params:
    """Published: eps = 0.28."""

    name: str = "tic"
    eps: float = 0.28
    """A response with rho above 1 + eps is dropped."""


def mass_bound(params: Params) -> float:
    """Largest group mean of kappa on one-token responses; no weight kappa/rho exceeds 1."""
    return 1 + params.eps


def coefficients(batch: GroupBatch, params: Params) -> Tensor:
    """Kappa [B, G, T] = rho below the threshold, else 0; masked before exp, so nothing overflows."""
    cap = log1p(params.eps)
    return on_tokens(batch, batch.log_rho.clamp(max=cap).exp() * (batch.log_rho <= cap))
