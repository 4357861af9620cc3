"""A-3PO (2512.06547; as in AReaL): decoupled PPO with an interpolated proximal policy, which needs no extra forward.

The anchor lies at alpha = (d-1)/d of the way from behaviour to current, d the delay: in log-probability (loglinear) or
in probability (linear). loglinear gives u = r^(1/d): the clip binds only outside [(1-eps)^d, (1+eps)^d] in r, so that
at large delays this is token importance sampling with a cap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from delaysim.estimators.base import GroupBatch, Recipe
from delaysim.estimators.decoupled import decoupled

if TYPE_CHECKING:
    from torch import Tensor

FLOOR = 1e-10
"""AReaL's floor under an interpolated probability."""

SCOPE = "response"
LEVEL = "token"
NEEDS = ("logp", "advantages", "delays")
DIAL = ("eps",)
CHOICES = {"method": ("loglinear", "linear")}
PUBLISHED = Recipe("group_norm", "token_mean")


@dataclass
class Params:
    """AReaL: loglinear, eps = 0.2, cap = 5."""

    name: str = "a3po"
    eps: float = 0.2
    """Clip range of current over proximal, around 1."""
    cap: float = 5.0
    """A token whose proximal over behaviour ratio exceeds this is dropped."""
    weight: bool = True
    """False = no proximal/behaviour weight and no cap: AReaL's default without rejection sampling."""
    method: str = "loglinear"
    """loglinear | linear."""


def coefficients(batch: GroupBatch, params: Params) -> Tensor:
    """Kappa [B, G, T]: decoupled PPO's, with the interpolated anchor."""
    return decoupled(batch, params, _anchor(batch, params.method))


def _anchor(batch: GroupBatch, method: str) -> Tensor:
    delays = batch.delays.to(batch.logp.dtype)[:, None, None]
    alpha = (delays - 1).clamp(min=0) / delays.clamp(min=1)
    if method == "linear":
        between = ((1 - alpha) * batch.behaviour.exp() + alpha * batch.logp.exp() + FLOOR).log()
        return between.where(alpha > 0, batch.behaviour)  # the floor must not move an anchor that is the behaviour
    return batch.behaviour + alpha * (batch.logp - batch.behaviour)
