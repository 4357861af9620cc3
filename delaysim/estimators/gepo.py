"""GEPO (2508.17850): the denominator of a response's ratio is an expectation over its group.

coef_i = p_i / E with p_i, q_i the length-normalised probabilities under the current and the behaviour weights and
E = sum q^2 / sum q over the group; then PPO's clip, gradient through p_i. It is not 1 at delay 0: a group of unequal
responses is reweighted and clipped on-policy too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from delaysim.estimators.base import GroupBatch, Recipe, bounded_exp, on_tokens, unclipped

if TYPE_CHECKING:
    from torch import Tensor

SCOPE = "group"
LEVEL = "sequence"
NEEDS = ("logp", "advantages")
DIAL = ("eps",)
AT_DELAY_0 = "a group of unequal responses is reweighted and clipped on-policy too"
PUBLISHED = Recipe("group_norm", "seq_mean_token_mean")


@dataclass
class Params:
    """Published: eps = 0.2 on both sides."""

    name: str = "gepo"
    eps: float = 0.2
    """Clip range around 1."""


def coefficients(batch: GroupBatch, params: Params) -> Tensor:
    """Kappa [B, G, T] = p / E where the clip does not bind, else 0."""
    lengths = batch.lengths.clamp(min=1)
    log_q = (batch.behaviour * batch.mask).sum(-1) / lengths
    log_expected = (2 * log_q).logsumexp(1, keepdim=True) - log_q.logsumexp(1, keepdim=True)
    ratio = bounded_exp(batch.log_mean_ratio + log_q - log_expected)
    return on_tokens(batch, ratio * unclipped(ratio, batch.advantages, 1 - params.eps, 1 + params.eps))
