"""GSPO (2507.18071, sec. 4): the clip on the sequence ratio s, the geometric mean of a response's token ratios.

The loss is the pessimistic minimum of s*A and clip(s)*A; grad s = s * mean over tokens of grad log pi, so kappa = s
where the clip does not bind. s varies far less than rho, hence clip ranges near 1e-4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from delaysim.estimators.base import GroupBatch, Recipe, bounded_exp, on_tokens, unclipped

if TYPE_CHECKING:
    from torch import Tensor

SCOPE = "response"
LEVEL = "sequence"
NEEDS = ("advantages",)
DIAL = ("eps", "eps_low")
PUBLISHED = Recipe("group_norm", "seq_mean_token_mean")


@dataclass
class Params:
    """Published: 3e-4 below, 4e-4 above; `eps` sets both."""

    name: str = "gspo"
    eps: float = 4e-4
    """Clip range above 1."""
    eps_low: float = 3e-4
    """Clip range below 1."""


def coefficients(batch: GroupBatch, params: Params) -> Tensor:
    """Kappa [B, G, T] = s where the clip does not bind, else 0."""
    ratio = bounded_exp(batch.log_mean_ratio)
    return on_tokens(batch, ratio * unclipped(ratio, batch.advantages, 1 - params.eps_low, 1 + params.eps))
