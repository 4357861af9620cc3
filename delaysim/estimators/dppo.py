"""DPPO (2602.04879; binary total variation, as in verl 0.9.1): a trust region for a token's probability, not its ratio.

kappa = min(r, cap) while the probability has moved by no more than `eps` in the direction of the update: pi - mu <= eps
where A > 0, mu - pi <= eps elsewhere. Rare tokens may then move by any ratio.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

from delaysim.estimators.base import GroupBatch, Recipe

if TYPE_CHECKING:
    from torch import Tensor

SCOPE = "response"
LEVEL = "token"
NEEDS = ("logp", "advantages")
DIAL = ("eps",)
PUBLISHED = Recipe("group_norm", "token_mean")


@dataclass
class Params:
    """prime-rl and verl: eps = 0.2; verl's function truncates the ratio at 20 (its default config at 3)."""

    name: str = "dppo"
    eps: float = 0.2
    """Largest change of a token's probability [absolute]."""
    cap: float = 20.0
    """Largest weight of a token."""


def mass_bound(params: Params) -> float:
    """Largest group mean of kappa on one-token responses; no weight kappa/rho exceeds 1."""
    return params.cap


def coefficients(batch: GroupBatch, params: Params) -> Tensor:
    """Kappa [B, G, T] = r, at most cap, while the probability stays inside the region, else 0."""
    moved = batch.logp.exp() - batch.behaviour.exp()
    kept = ((batch.advantage > 0) & (moved <= params.eps)) | ((batch.advantage <= 0) & (moved >= -params.eps))
    return batch.log_ratio.clamp(max=log(params.cap)).exp() * kept * batch.mask
