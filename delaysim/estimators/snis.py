"""Self-normalised importance sampling within a group: kappa = rho / mean rho.

The group's mean coefficient is 1 whatever the delay: bounded by G and biased by O(1/G). GMC-GRPO is the one-sided form
of it: min(rho, (1 + eps) * rho / mean rho) (2610.01896, Proposition 2), and equal to it at eps = 0 where mean rho >= 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

from delaysim.estimators.base import GroupBatch, Recipe, bounded_exp, on_tokens

if TYPE_CHECKING:
    from torch import Tensor

SCOPE = "group"
LEVEL = "trajectory"
NEEDS = ()
DIAL = ()
PUBLISHED = Recipe("group_norm", "seq_mean_token_sum")


@dataclass
class Params:
    """No settings."""

    name: str = "snis"


def coefficients(batch: GroupBatch, params: Params) -> Tensor:
    """Kappa [B, G, T] = rho over its group mean, in log space."""
    log_mean = batch.log_rho.logsumexp(1, keepdim=True) - log(batch.log_rho.shape[1])
    return on_tokens(batch, bounded_exp(batch.log_rho - log_mean))
