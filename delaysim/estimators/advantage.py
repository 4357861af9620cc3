"""Advantages from rewards; one rule for every estimator of a run, unless a published recipe is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

STD_FLOOR = 1e-4
ADVANTAGES = ("group_norm", "group_mean", "leave_one_out", "length_norm", "reward", "signed_reward")
NEEDS_GROUP = ("group_norm", "group_mean", "leave_one_out", "length_norm")
"""Advantages with a group baseline, which one response cannot give."""


def advantages(rewards: Tensor, kind: str, lengths: Tensor) -> Tensor:
    """[B, G] advantages of rewards and lengths [B, G] (tokens); with a group baseline, equal scores give exactly 0.

    group_norm: (R - mean) / (std + 1e-4), std with Bessel's correction (TRL's GRPO). group_mean: R - mean
    (Dr.GRPO, 2503.20783). leave_one_out: R - mean of the others (RLOO, 2402.14740). length_norm: group_norm of
    R / length (TIC-GRPO, 2508.02833). reward: R itself. signed_reward: 2R - 1, the +-1 of TOPR (2503.14286).
    """
    if kind == "reward":
        return rewards
    if kind == "signed_reward":
        return 2 * rewards - 1
    scores = rewards / lengths.clamp(min=1) if kind == "length_norm" else rewards
    centred = scores - scores.mean(1, keepdim=True)
    mixed = scores.amax(1, keepdim=True) > scores.amin(1, keepdim=True)
    return centred / _divisor(scores, kind) * mixed


def _divisor(scores: Tensor, kind: str) -> Tensor | float:
    if kind == "leave_one_out":
        return (scores.shape[1] - 1) / scores.shape[1]
    if kind == "group_mean":
        return 1.0
    return scores.std(1, keepdim=True) + STD_FLOOR
