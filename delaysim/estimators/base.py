"""What every estimator sees and returns, and the one place that turns coefficients into a loss weight.

The update direction is sum over responses and tokens of kappa * advantage * aggregation * grad log pi. An estimator
supplies kappa, the detached coefficient; everything else is shared.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import exp, inf, log
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

LOG_KAPPA_BOUND = 30.0
"""log kappa saturates here; saturated tokens are counted."""
AGGREGATIONS = ("seq_mean_token_mean", "seq_mean_token_sum", "token_mean", "fixed_length")
SCOPES = ("response", "group", "batch")
"""What one response's coefficients may depend on: itself, its group, or the whole mini-batch."""
LEVELS = ("token", "sequence", "trajectory", "none")
"""Whose plain ratio a coefficient stands for: r_t, its geometric mean s, their product rho, or 1."""
INPUTS = ("logp", "rewards", "advantages", "delays", "versions", "proximal")
"""What an estimator may need beside log-ratios and mask; `logp` = the probabilities themselves."""


@dataclass(frozen=True)
class Recipe:
    """The advantage and the aggregation a paper publishes its method with."""

    advantage: str
    aggregation: str


@dataclass(frozen=True)
class GroupBatch:
    """A mini-batch of B groups of G responses, padded to T tokens. Nothing in it carries gradients."""

    logp: Tensor
    """[B, G, T] log-probability of each token under the current weights [nats], 0 on padding."""
    behaviour: Tensor
    """[B, G, T] the same under the weights that sampled it, as sampled; equal to `logp` at delay 0."""
    mask: Tensor
    """[B, G, T] 1 on response tokens, 0 on padding; same float type as `logp`."""
    rewards: Tensor
    """[B, G]."""
    advantages: Tensor
    """[B, G]."""
    delays: Tensor
    """[B] updates between generation and consumption."""
    versions: Tensor
    """[B] updates behind the generating weights."""
    proximal: Tensor | None = None
    """[B, G, T] log-probabilities under the proximal policy: the weights at the first step on this mini-batch."""
    reference: Tensor | None = None
    """[B, G, T] log-probabilities under the base weights, for the KL penalty."""

    @cached_property
    def present(self) -> Tensor:
        """[B, G, T] the mask as booleans."""
        return self.mask > 0

    @cached_property
    def log_ratio(self) -> Tensor:
        """[B, G, T] current minus behaviour log-probability [nats], 0 on padding."""
        return (self.logp - self.behaviour) * self.mask

    @cached_property
    def log_rho(self) -> Tensor:
        """[B, G] log of the trajectory importance ratio: the summed log-ratio of each response [nats]."""
        return self.log_ratio.sum(-1)

    @cached_property
    def ratio(self) -> Tensor:
        """[B, G, T] token importance ratio r, saturating at the bound; 1 on padding."""
        return bounded_exp(self.log_ratio)

    @cached_property
    def rho(self) -> Tensor:
        """[B, G] trajectory importance ratio, saturating at the bound."""
        return bounded_exp(self.log_rho)

    @cached_property
    def log_mean_ratio(self) -> Tensor:
        """[B, G] mean log-ratio per token: the log of the sequence ratio s (GSPO)."""
        return self.log_rho / self.lengths.clamp(min=1)

    @cached_property
    def advantage(self) -> Tensor:
        """[B, G, 1] advantages, to stand beside token values."""
        return self.advantages.unsqueeze(-1)

    @cached_property
    def anchor(self) -> Tensor:
        """[B, G, T] proximal log-probabilities; at the first step on a mini-batch they are the current ones."""
        return self.logp if self.proximal is None else self.proximal

    @cached_property
    def lengths(self) -> Tensor:
        """[B, G] response lengths [tokens]."""
        return self.mask.sum(-1)


def bounded_exp(log_kappa: Tensor) -> Tensor:
    """exp, saturating at LOG_KAPPA_BOUND."""
    return log_kappa.clamp(max=LOG_KAPPA_BOUND).exp()


def unclipped(ratio: Tensor, advantage: Tensor, low: float, high: float) -> Tensor:
    """True where PPO's pessimistic minimum takes the unclipped branch, whose gradient is that of the ratio itself."""
    unbounded = advantage.new_full((), inf)
    return (ratio <= unbounded.where(advantage <= 0, high)) & (ratio >= (-unbounded).where(advantage >= 0, low))


def ppo_clip(batch: GroupBatch, low: float, high: float) -> Tensor:
    """[B, G, T] r where PPO's clip to [low, high] does not bind, else 0."""
    return batch.ratio.where(unclipped(batch.ratio, batch.advantage, low, high) & batch.present, 0)


def truncated(batch: GroupBatch, cap: float) -> Tensor:
    """[B, G, T] r, at most cap; capped before exp, so nothing overflows."""
    return batch.log_ratio.clamp(max=log(cap)).exp() * batch.mask


def on_tokens(batch: GroupBatch, kappa: Tensor) -> Tensor:
    """A coefficient per response [B, G] as one per token [B, G, T]."""
    return kappa.unsqueeze(-1) * batch.mask


def saturated(kappa: Tensor) -> int:
    """Tokens whose coefficient stands at the bound."""
    return int((kappa >= exp(LOG_KAPPA_BOUND) * (1 - 1e-6)).sum())


def aggregation_weights(mask: Tensor, kind: str, longest: int = 1) -> Tensor:
    """[B, G, T] weight of each token in the batch's mean; `kind` is one of AGGREGATIONS.

    seq_mean_token_mean: tokens averaged within a response, then responses (GRPO, 2402.03300).
    seq_mean_token_sum: tokens summed, then responses averaged (the policy gradient of whole trajectories).
    token_mean: all tokens of the batch averaged (DAPO, 2503.14476).
    fixed_length: tokens summed and divided by `longest`, the longest response allowed (Dr.GRPO, 2503.20783).
    """
    responses = mask.shape[0] * mask.shape[1]
    if kind == "seq_mean_token_mean":
        return mask / mask.sum(-1, keepdim=True).clamp(min=1) / responses
    if kind == "token_mean":
        return mask / mask.sum().clamp(min=1)
    return mask / responses / (longest if kind == "fixed_length" else 1)


def weighted(batch: GroupBatch, kappa: Tensor, share: Tensor) -> Tensor:
    """The same, with the aggregation weights of the whole mini-batch where `batch` is a part of it."""
    return kappa * batch.advantage * share
