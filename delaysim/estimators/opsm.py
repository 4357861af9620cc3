"""Off-policy sequence masking (DeepSeek-V3.2, 2512.02556, Eq. 9): GRPO without stale bad responses.

A response with A < 0 is dropped whole where the mean of (behaviour - current) log-probability exceeds a threshold; the
others are GRPO's. TRL's off_policy_mask_threshold.
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
DIAL = ("delta",)
PUBLISHED = Recipe("group_norm", "seq_mean_token_mean")


@dataclass
class Params:
    """TRL's documentation suggests delta = 0.5; `eps` sets delta."""

    name: str = "opsm"
    delta: float = 0.5
    """Mean log-probability lost per token beyond which a bad response is dropped [nats]."""
    clip: float = 0.2
    """GRPO's clip range."""


def coefficients(batch: GroupBatch, params: Params) -> Tensor:
    """Kappa [B, G, T] = GRPO's, 0 on dropped responses."""
    stale = (batch.advantages < 0) & (-batch.log_mean_ratio > params.delta)
    return ppo_clip(batch, 1 - params.clip, 1 + params.clip) * ~stale.unsqueeze(-1)
