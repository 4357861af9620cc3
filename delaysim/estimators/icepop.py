"""IcePop (Ring-1T, 2510.18855): token importance weights inside a band, kappa = r * 1{low <= r <= cap}.

Made for the difference between sampling and training engines; here the same mask meets delay.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log
from typing import TYPE_CHECKING

from delaysim.estimators.base import GroupBatch, Recipe

if TYPE_CHECKING:
    from torch import Tensor

SCOPE = "response"
LEVEL = "token"
NEEDS = ()
DIAL = ("cap",)
PUBLISHED = Recipe("group_norm", "token_mean")


@dataclass
class Params:
    """Published: 0.5 to 5. `eps` sets cap = 1 + eps."""

    name: str = "icepop"
    low: float = 0.5
    """A token with r below this is dropped; 0 = no lower bound."""
    cap: float = 5.0
    """A token with r above this is dropped."""


def mass_bound(params: Params) -> float:
    """Largest group mean of kappa on one-token responses; no weight kappa/rho exceeds 1."""
    return params.cap


def coefficients(batch: GroupBatch, params: Params) -> Tensor:
    """Kappa [B, G, T] = r inside the band, else 0; masked before exp."""
    low = log(params.low) if params.low > 0 else -inf
    kept = (batch.log_ratio >= low) & (batch.log_ratio <= log(params.cap))
    return batch.log_ratio.clamp(max=log(params.cap)).exp() * kept * batch.mask
