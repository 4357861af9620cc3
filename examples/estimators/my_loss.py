"""Truncated importance sampling, wider for good responses than for bad ones."""

from dataclasses import dataclass
from math import log

from delaysim.estimators.base import on_tokens

SCOPE, LEVEL, NEEDS = "response", "trajectory", ("advantages",)


@dataclass
class Params:
    """The short name `eps` sets the field of that name."""

    eps: float = 0.28
    cap: float = 2.0


def coefficients(batch, params):
    """Kappa [B, G, T] = min(rho, cap) where A > 0, min(rho, 1 + eps) elsewhere; capped before exp."""
    wide, narrow = (batch.log_rho.clamp(max=log(cap)).exp() for cap in (params.cap, 1 + params.eps))
    return on_tokens(batch, wide.where(batch.advantages > 0, narrow))
