"""CISPO (MiniMax-M1, 2506.13585, Eq. 4-5): the token ratio clipped as a weight, so that every token keeps a gradient.

kappa = min(r, cap) for either sign of the advantage; the lower bound is off, as published. `cap` is absolute: TRL's
epsilon_high is the same number, verl's clip_ratio_high is cap - 1.
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
    """ScaleRL (2510.13786): cap = 5. `eps` sets cap = 1 + eps."""

    name: str = "cispo"
    cap: float = 5.0
    """Largest weight of a token, absolute."""


def mass_bound(params: Params) -> float:
    """Largest group mean of kappa on one-token responses; no weight kappa/rho exceeds 1."""
    return params.cap


def coefficients(batch: GroupBatch, params: Params) -> Tensor:
    """Kappa [B, G, T] = r, at most cap."""
    return truncated(batch, params.cap)
