"""Decoupled PPO (Hilton et al., 2110.00641; AReaL, 2505.24298): the clip is around a proximal policy.

The loss is sg(pi_prox / mu) * min(u*A, clip(u)*A) with u = pi / pi_prox, the proximal policy being the weights at the
first of `learner.updates_per_batch` steps. Where nothing is clipped the coefficient is pi / mu whatever the anchor:
with one step this is token importance sampling with tokens above `cap` dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Any

from delaysim.estimators.base import GroupBatch, Recipe, bounded_exp, unclipped

if TYPE_CHECKING:
    from torch import Tensor

SCOPE = "response"
LEVEL = "token"
NEEDS = ("advantages", "proximal")
DIAL = ("eps",)
PUBLISHED = Recipe("group_norm", "token_mean")


@dataclass
class Params:
    """AReaL: eps = 0.2, cap = 5."""

    name: str = "decoupled"
    eps: float = 0.2
    """Clip range of current over proximal, around 1."""
    cap: float = 5.0
    """A token whose proximal over behaviour ratio exceeds this is dropped."""
    weight: bool = True
    """False = no proximal/behaviour weight and no cap: AReaL's default without rejection sampling."""


def coefficients(batch: GroupBatch, params: Params) -> Tensor:
    """Kappa [B, G, T] = (pi_prox / mu) * u inside the clip and under the cap, else 0."""
    return decoupled(batch, params, batch.anchor)


def decoupled(batch: GroupBatch, params: Any, anchor: Tensor) -> Tensor:
    """The coefficient for any anchor [B, G, T]; `params` gives eps, cap and weight."""
    ratio = bounded_exp((batch.logp - anchor) * batch.mask)
    free = unclipped(ratio, batch.advantage, 1 - params.eps, 1 + params.eps) & batch.present
    if not params.weight:
        return ratio.where(free, 0)
    return batch.ratio.where(free & (anchor - batch.behaviour <= log(params.cap)), 0)
