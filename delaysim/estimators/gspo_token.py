"""GSPO-token (2507.18071, sec. 4.3): GSPO written per token, s_t = sg(s) * pi / sg(pi).

s_t has the value of s and the gradient of its own token, so each token could have its own advantage. With one advantage
per response, as here, its gradient is GSPO's; the two files differ once advantages vary within a response.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from delaysim.estimators.base import GroupBatch, Recipe, bounded_exp, unclipped

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

    name: str = "gspo_token"
    eps: float = 4e-4
    """Clip range above 1."""
    eps_low: float = 3e-4
    """Clip range below 1."""


def coefficients(batch: GroupBatch, params: Params) -> Tensor:
    """Kappa [B, G, T] = s at every token where the clip does not bind, else 0."""
    ratio = bounded_exp(batch.log_mean_ratio).unsqueeze(-1) * batch.mask
    return ratio * unclipped(ratio, batch.advantage, 1 - params.eps_low, 1 + params.eps)
