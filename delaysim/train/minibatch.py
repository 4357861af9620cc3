"""A mini-batch as estimators see it: laid out before it is scored, then filled in, whole or some rows at a time."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from delaysim.estimators.advantage import advantages
from delaysim.estimators.base import GroupBatch
from delaysim.policy.rollout import Group
from delaysim.train.behaviour import behaviour_of


def unscored(update: int, groups: Sequence[Group], advantage: str, behaviour: str) -> GroupBatch:
    """Everything about B groups that needs no model; `logp` is 0. In float64, on the CPU."""
    lengths = torch.tensor([group.lengths for group in groups])
    mask = (torch.arange(int(lengths.max())) < lengths[..., None]).double()
    rewards = torch.tensor([group.rewards for group in groups], dtype=torch.float64)
    versions = torch.tensor([group.version for group in groups])
    return GroupBatch(
        logp=torch.zeros_like(mask),
        behaviour=behaviour_of(groups, mask, behaviour),
        mask=mask,
        rewards=rewards,
        advantages=advantages(rewards, advantage, mask.sum(-1)),
        delays=update - versions,
        versions=versions,
    )


def again(first: GroupBatch, advantage: str) -> GroupBatch:
    """The same mini-batch for another step on it; the weights before the first step are the proximal policy."""
    return replace(first, proximal=first.logp, advantages=advantages(first.rewards, advantage, first.lengths))


def scored(batch: GroupBatch, logp: torch.Tensor, same_at_0: bool) -> GroupBatch:
    """With the current log-probabilities [B, G, T]; at delay 0, at the first step, they are the behaviour's too.

    Not without `same_at_0`: the sampler's own are asked for, or it has other weights than the learner.
    """
    fresh = _fresh(batch) & (batch.proximal is None and same_at_0)
    return replace(batch, logp=logp, behaviour=torch.where(fresh, logp, batch.behaviour))


def fresh_log_ratio(batch: GroupBatch, logp: torch.Tensor) -> float:
    """Largest |log-ratio| measured at delay 0, of an unscored batch; 0 where there is none."""
    measured = ((logp - batch.behaviour) * batch.mask)[_fresh(batch)].abs()
    return float(measured.max()) if measured.numel() else 0.0


def some(batch: GroupBatch, rows: torch.Tensor) -> GroupBatch:
    """These responses [n] of the batch, counted through all groups, each as a group of its own: [n, 1, T]."""
    size = batch.mask.shape[1]

    def tokens(values: torch.Tensor | None) -> torch.Tensor | None:
        return None if values is None else values.flatten(0, 1)[rows][:, None]

    return GroupBatch(
        logp=batch.logp.flatten(0, 1)[rows][:, None],
        behaviour=batch.behaviour.flatten(0, 1)[rows][:, None],
        mask=batch.mask.flatten(0, 1)[rows][:, None],
        rewards=batch.rewards.flatten()[rows][:, None],
        advantages=batch.advantages.flatten()[rows][:, None],
        delays=batch.delays[rows // size],
        versions=batch.versions[rows // size],
        proximal=tokens(batch.proximal),
        reference=tokens(batch.reference),
    )


def _fresh(batch: GroupBatch) -> torch.Tensor:
    return (batch.delays == 0)[:, None, None].expand_as(batch.mask)
