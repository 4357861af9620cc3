"""No correction: stale responses are trained on as if they were fresh.

The baseline that every importance-weighted method is measured against: kappa = 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from delaysim.estimators.base import GroupBatch, Recipe

if TYPE_CHECKING:
    from torch import Tensor

SCOPE = "response"
LEVEL = "none"
NEEDS = ()
DIAL = ()
PUBLISHED = Recipe("group_norm", "seq_mean_token_mean")


@dataclass
class Params:
    """No settings."""

    name: str = "reinforce"


def coefficients(batch: GroupBatch, params: Params) -> Tensor:
    """Kappa [B, G, T] = 1."""
    return batch.mask
