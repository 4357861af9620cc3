"""TOPR (2503.14286, Eq. 8): good responses count fully, bad ones by their truncated ratio.

kappa = 1 where A > 0 and min(rho, 1) elsewhere. The paper's advantage is the raw reward +-1, so that groups of equal
rewards are not silent: `recipe=published`. ROLL's version, on token ratios, differs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from delaysim.estimators.base import GroupBatch, Recipe, on_tokens

if TYPE_CHECKING:
    from torch import Tensor

SCOPE = "response"
LEVEL = "trajectory"
NEEDS = ("advantages",)
DIAL = ()
PUBLISHED = Recipe("signed_reward", "seq_mean_token_sum")


@dataclass
class Params:
    """No settings."""

    name: str = "topr"


def coefficients(batch: GroupBatch, params: Params) -> Tensor:
    """Kappa [B, G, T] = 1 where A > 0, min(rho, 1) elsewhere."""
    good = batch.advantages > 0
    return on_tokens(batch, good + batch.log_rho.clamp(max=0).exp() * ~good)
