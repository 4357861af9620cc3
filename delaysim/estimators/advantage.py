"""Advantages from rewards; one rule for every estimator of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

STD_FLOOR = 1e-4
ADVANTAGES = ("group_norm", "group_mean", "reward")
NEEDS_GROUP = ("group_norm", "group_mean")
"""Advantages with a group baseline, which one response cannot give."""


def advantages(rewards: Tensor, kind: str) -> Tensor:
    """[B, G] advantages of rewards [B, G]; exactly 0 in a group whose rewards are all equal.

    group_norm: (R - mean) / (std + 1e-4), std with Bessel's correction (TRL's GRPO). group_mean: R - mean
    (Dr.GRPO, 2503.20783). reward: R itself.
    """
    if kind == "reward":
        return rewards
    centred = rewards - rewards.mean(1, keepdim=True)
    mixed = rewards.amax(1, keepdim=True) > rewards.amin(1, keepdim=True)
    if kind == "group_norm":
        centred = centred / (rewards.std(1, keepdim=True) + STD_FLOOR)
    return centred * mixed
