"""Trajectory importance sampling, unclipped: kappa = rho, unbiased at any delay, of unbounded variance.

The estimator whose bias is zero in GMC-GRPO's analysis (2610.01896, Remark 4); every cap trades against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from delaysim.estimators.base import GroupBatch, Recipe, on_tokens

if TYPE_CHECKING:
    from torch import Tensor

SCOPE = "response"
LEVEL = "trajectory"
NEEDS = ()
DIAL = ()
PUBLISHED = Recipe("group_norm", "seq_mean_token_sum")


@dataclass
class Params:
    """No settings."""

    name: str = "is"


def coefficients(batch: GroupBatch, params: Params) -> Tensor:
    """Kappa [B, G, T] = rho, saturating at the shared bound."""
    return on_tokens(batch, batch.rho)
