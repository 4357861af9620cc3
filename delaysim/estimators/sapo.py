"""SAPO (2511.20347): a smooth gate in place of the clip.

The loss is f(r)*A with f(r) = (4/tau) * sigmoid(tau * (r - 1)); its derivative gives kappa = r * sech^2(tau*(r-1)/2).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import cosh, tanh
from typing import TYPE_CHECKING

from delaysim.estimators.base import GroupBatch, Recipe

if TYPE_CHECKING:
    from torch import Tensor

SCOPE = "response"
LEVEL = "token"
NEEDS = ("advantages",)
DIAL = ()
PUBLISHED = Recipe("group_norm", "seq_mean_token_mean")


@dataclass
class Params:
    """Published: tau 1.0 where A > 0, 1.05 elsewhere."""

    name: str = "sapo"
    tau_pos: float = 1.0
    """Temperature of the gate where A > 0."""
    tau_neg: float = 1.05
    """Temperature where A <= 0."""


def mass_bound(params: Params) -> float:
    """Largest group mean of kappa on one-token responses; no weight kappa/rho exceeds 1."""
    return max(_peak(params.tau_pos), _peak(params.tau_neg))


def coefficients(batch: GroupBatch, params: Params) -> Tensor:
    """Kappa [B, G, T] = r * sech^2(tau * (r - 1) / 2); cosh is held below overflow, where the gate is 0."""
    tau = params.tau_neg + (params.tau_pos - params.tau_neg) * (batch.advantage > 0).to(batch.mask)
    gate = (0.5 * tau * (batch.ratio - 1)).clamp(max=350).cosh() ** -2
    return batch.ratio * gate * batch.mask


def _peak(tau: float) -> float:
    """Sup of r * sech^2(tau * (r - 1) / 2): where tau * r * tanh(tau * (r - 1) / 2) = 1."""
    from scipy.optimize import brentq

    root = brentq(lambda r: tau * r * tanh(tau * (r - 1) / 2) - 1, 1.0, 2 + 2 / tau)
    return float(root / cosh(tau * (root - 1) / 2) ** 2)
