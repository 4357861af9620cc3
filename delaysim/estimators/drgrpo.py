"""Dr.GRPO (2503.20783): GRPO's coefficients with an advantage and an aggregation free of length and difficulty bias.

R - mean without the standard deviation, tokens summed and divided by a constant. Both are shared settings here, so
under the shared recipe this is GRPO; `recipe=published` makes it Dr.GRPO.
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
PUBLISHED = Recipe("group_mean", "fixed_length")


@dataclass
class Params:
    """Published: eps = 0.2 on both sides."""

    name: str = "drgrpo"
    eps: float = 0.2
    """Clip range of the token ratio around 1."""


def coefficients(batch: GroupBatch, params: Params) -> Tensor:
    """Kappa [B, G, T] = r where the clip does not bind, else 0."""
    return ppo_clip(batch, 1 - params.eps, 1 + params.eps)
