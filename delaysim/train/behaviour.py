"""The behaviour policy's log-probabilities, the sampler's and the learner's, and how far mismatch alone would go."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from delaysim import measures
from delaysim.estimators.base import GroupBatch
from delaysim.estimators.interface import Estimator
from delaysim.policy.rollout import Group, Logps, Response
from delaysim.settings.behaviour import SAMPLER


@dataclass(frozen=True)
class Mismatch:
    """Learner minus sampler at launch: same weights, same tokens, no delay."""

    difference: torch.Tensor
    """[B, G, T] of the log-probabilities [nats], 0 on padding."""
    lengths: torch.Tensor
    """[B, G] tokens."""
    over: torch.Tensor
    """[B, G] responses that the estimator would intervene on for it alone."""

    def update_columns(self) -> dict[str, float]:
        """Columns of a row of `updates`."""
        size, whole = self.difference.abs(), self.difference.sum(-1).abs()
        return {
            "mismatch_mean": float(size.sum() / self.lengths.sum().clamp(min=1)),
            "mismatch_max": float(size.max()),
            "mismatch_response": float(whole.mean()),
            "mismatch_over": float(self.over.double().mean()),
        }

    def group_columns(self) -> dict[str, torch.Tensor]:
        """[B] each, columns of the rows of `groups`."""
        size, whole = self.difference.abs(), self.difference.sum(-1).abs()
        return {
            "mismatch_mean": size.sum((1, 2)) / self.lengths.sum(1).clamp(min=1),
            "mismatch_max": size.amax((1, 2)),
            "mismatch_response": whole.mean(1),
            "mismatch_over": self.over.double().mean(1),
        }


def behaviour_of(groups: Sequence[Group], like: torch.Tensor, which: str) -> torch.Tensor:
    """[B, G, T] as `behaviour` chooses, 0 on padding; sampled ones stand for recomputed ones that were not made."""
    return _padded(groups, like, sampled=which == SAMPLER)


def mismatch_of(groups: Sequence[Group], batch: GroupBatch, estimator: Estimator) -> Mismatch | None:
    """None where some response has no recomputed log-probabilities."""
    if any(response.recomputed is None for group in groups for response in group.responses):
        return None
    sampler, learner = (_padded(groups, batch.logp, sampled) for sampled in (True, False))
    apart = alone(batch, learner, sampler)
    return Mismatch(apart.log_ratio, batch.lengths, intervened(apart, estimator))


def alone(batch: GroupBatch, learner: torch.Tensor, sampler: torch.Tensor) -> GroupBatch:
    """The mini-batch as if it had no delay and the two engines' difference were its only log-ratio."""
    return replace(batch, logp=learner, behaviour=sampler, delays=torch.zeros_like(batch.delays), proximal=None)


def intervened(apart: GroupBatch, estimator: Estimator) -> torch.Tensor:
    """[B, G] responses with a token off its plain ratio, which would not be so if the engines agreed."""
    agreeing = replace(apart, behaviour=apart.logp)
    hit, anyway = (measures.touched(b, estimator.coefficients(b), estimator.level) > 0 for b in (apart, agreeing))
    return hit & ~anyway


def _padded(groups: Sequence[Group], like: torch.Tensor, sampled: bool) -> torch.Tensor:
    out = torch.zeros_like(like)
    for b, group in enumerate(groups):
        for i, response in enumerate(group.responses):
            values = _logp(response, sampled)
            out[b, i, : len(values)] = torch.from_numpy(values)
    return out


def _logp(response: Response, sampled: bool) -> Logps:
    return response.logp if sampled or response.recomputed is None else response.recomputed
