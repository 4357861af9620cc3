"""Dual-clip PPO (1912.09729, Eq. 5; verl's default policy loss): GRPO's clip, and a bound where A < 0 too.

The loss of a token with A < 0 is at most -dual*A: beyond r = dual it has no gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from delaysim.estimators.base import GroupBatch, Recipe, ppo_clip

if TYPE_CHECKING:
    from torch import Tensor

SCOPE = "response"
LEVEL = "token"
NEEDS = ("advantages",)
DIAL = ("eps",)
PUBLISHED = Recipe("group_norm", "token_mean")


@dataclass
class Params:
    """verl: eps = 0.2, dual = 3.0."""

    name: str = "dualclip"
    eps: float = 0.2
    """Clip range of the token ratio around 1."""
    dual: float = 3.0
    """A token with A < 0 and r above this has no gradient."""


def mass_bound(params: Params) -> float:
    """Largest group mean of kappa on one-token responses; no weight kappa/rho exceeds 1."""
    return max(1 + params.eps, params.dual)


def coefficients(batch: GroupBatch, params: Params) -> Tensor:
    """Kappa [B, G, T] = r where neither clip binds, else 0."""
    kappa = ppo_clip(batch, 1 - params.eps, 1 + params.eps)
    return kappa.masked_fill((batch.advantage < 0) & (batch.ratio > params.dual), 0)
