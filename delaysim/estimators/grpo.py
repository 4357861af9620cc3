"""GRPO's clipped token ratio (DeepSeekMath, 2402.03300, sec. 4).

The published loss is the pessimistic minimum of r*A and clip(r, 1-eps, 1+eps)*A. Its gradient is r*A*grad log pi
where the minimum is the unclipped branch and nothing elsewhere; a token with A < 0 and r > 1 is not bounded.
No KL term (`learner.kl` adds one).
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
PUBLISHED = Recipe("group_norm", "seq_mean_token_mean")


@dataclass
class Params:
    """Published: eps = 0.2 on both sides."""

    name: str = "grpo"
    eps: float = 0.2
    """Clip range of the token ratio around 1."""


def coefficients(batch: GroupBatch, params: Params) -> Tensor:
    """Kappa [B, G, T] = r where the clip does not bind, else 0."""
    return ppo_clip(batch, 1 - params.eps, 1 + params.eps)
