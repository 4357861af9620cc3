"""Truncated importance sampling of whole responses: kappa = min(rho, cap).

The core of VCPO (2602.17616; `rule=vcpo` adds its baseline and step scaling) and verl's sequence-level correction. In
GMC-GRPO's class only for cap <= 1 + eps (2610.01896, Definition 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

from delaysim.estimators.base import GroupBatch, Recipe, on_tokens

if TYPE_CHECKING:
    from torch import Tensor

SCOPE = "response"
LEVEL = "trajectory"
NEEDS = ()
DIAL = ("cap",)
PUBLISHED = Recipe("group_norm", "seq_mean_token_mean")


@dataclass
class Params:
    """VCPO's scripts: cap = 8; verl's example: 2. `eps` sets cap = 1 + eps."""

    name: str = "tis"
    cap: float = 8.0
    """Largest weight of a response."""


def mass_bound(params: Params) -> float:
    """Largest group mean of kappa on one-token responses; no weight kappa/rho exceeds 1."""
    return params.cap


def coefficients(batch: GroupBatch, params: Params) -> Tensor:
    """Kappa [B, G, T] = rho, at most cap; capped before exp."""
    return on_tokens(batch, batch.log_rho.clamp(max=log(params.cap)).exp())
