"""TIC-GRPO as GMC-GRPO's paper uses it: the trajectory ratio, dropped whole above a threshold.

kappa = rho * 1{rho <= 1+eps} for either sign of the advantage (2508.02833; usage in 2610.01896, Definition 1).
Equals the derivative of min(rho, 1+eps) * A, which passes at equality. Its length-corrected advantage is not used:
every method shares one advantage.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log1p
from typing import TYPE_CHECKING

from delaysim.estimators.base import GroupBatch, on_tokens

if TYPE_CHECKING:
    from torch import Tensor

SCOPE = "response"


@dataclass
class Params:
    """Published: eps = 0.28."""

    name: str = "tic"
    eps: float = 0.28
    """A response with rho above 1 + eps is dropped."""


def coefficients(batch: GroupBatch, params: Params) -> Tensor:
    """Kappa [B, G, T] = rho below the threshold, else 0; masked before exp, so nothing overflows."""
    cap = log1p(params.eps)
    return on_tokens(batch, batch.log_rho.clamp(max=cap).exp() * (batch.log_rho <= cap))
