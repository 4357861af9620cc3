"""GRPO's clipped token ratio (DeepSeekMath, 2402.03300, sec. 4).

The published loss is the pessimistic minimum of r*A and clip(r, 1-eps, 1+eps)*A. Its gradient is r*A*grad log pi
where the minimum is the unclipped branch and nothing elsewhere; a token with A < 0 and r > 1 is not bounded.
No KL term.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from delaysim.estimators.base import GroupBatch, bounded_exp

if TYPE_CHECKING:
    from torch import Tensor

SCOPE = "response"


@dataclass
class Params:
    """Published: eps = 0.2 on both sides."""

    name: str = "grpo"
    eps: float = 0.2
    """Clip range of the token ratio around 1."""


def coefficients(batch: GroupBatch, params: Params) -> Tensor:
    """Kappa [B, G, T] = r where the clip does not bind, else 0."""
    ratio, advantage = bounded_exp(batch.log_ratio), batch.advantages.unsqueeze(-1)
    too_high = (advantage > 0) & (ratio > 1 + params.eps)
    too_low = (advantage < 0) & (ratio < 1 - params.eps)
    return ratio * batch.mask * ~(too_high | too_low)
