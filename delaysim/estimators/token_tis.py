"""Truncated importance sampling token by token: kappa = min(r, cap) (verl's rollout correction, token level).

Without the product over tokens the correction is biased at any cap, but its variance does not grow with length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from delaysim.estimators.base import GroupBatch, Recipe, truncated

if TYPE_CHECKING:
    from torch import Tensor

SCOPE = "response"
LEVEL = "token"
NEEDS = ()
DIAL = ("cap",)
PUBLISHED = Recipe("group_norm", "token_mean")


@dataclass
class Params:
    """verl's example: cap = 2. `eps` sets cap = 1 + eps."""

    name: str = "token_tis"
    cap: float = 2.0
    """Largest weight of a token."""


def mass_bound(params: Params) -> float:
    """Largest group mean of kappa on one-token responses; no weight kappa/rho exceeds 1."""
    return params.cap


def coefficients(batch: GroupBatch, params: Params) -> Tensor:
    """Kappa [B, G, T] = r, at most cap."""
    return truncated(batch, params.cap)
