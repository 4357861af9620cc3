"""DAPO's clip-higher (2503.14476, sec. 3.1): GRPO's clip with a wider upper side.

The published method also averages over all tokens of the batch (`recipe=published`) and resamples groups whose rewards
are all equal; here those have advantage 0. No KL term.
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
    """Published: 0.2 below, 0.28 above; `eps` sets the upper side."""

    name: str = "dapo"
    eps: float = 0.28
    """Clip range above 1."""
    eps_low: float = 0.2
    """Clip range below 1."""


def coefficients(batch: GroupBatch, params: Params) -> Tensor:
    """Kappa [B, G, T] = r where the clip does not bind, else 0."""
    return ppo_clip(batch, 1 - params.eps_low, 1 + params.eps)
