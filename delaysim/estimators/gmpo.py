"""GMPO (2507.20673): the geometric mean of clipped token ratios.

Token log-ratios are clipped to [-eps_low, eps] by PPO's pessimistic rule and then averaged: G = exp(mean). A token
whose clip binds has no gradient; the others share kappa = G.
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
    """Published: exp(-0.4) to exp(0.4); `eps` sets both sides [nats]."""

    name: str = "gmpo"
    eps: float = 0.4
    """Upper clip of a token's log-ratio [nats]."""
    eps_low: float = 0.4
    """Lower clip of a token's log-ratio [nats]."""


def coefficients(batch: GroupBatch, params: Params) -> Tensor:
    """Kappa [B, G, T] = geometric mean of the clipped ratios where the token's clip does not bind, else 0."""
    free = unclipped(batch.log_ratio, batch.advantage, -params.eps_low, params.eps)
    clipped = batch.log_ratio.clamp(-params.eps_low, params.eps)
    log_ratio = clipped + (batch.log_ratio - clipped).masked_fill(~free, 0)
    mean = log_ratio.sum(-1, keepdim=True) / batch.lengths.clamp(min=1).unsqueeze(-1)
    return bounded_exp(mean) * free * batch.mask
