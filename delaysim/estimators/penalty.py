"""The KL penalty towards the base weights, as coefficients beside the estimator's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delaysim.estimators.base import GroupBatch, bounded_exp

if TYPE_CHECKING:
    from torch import Tensor

PENALTIES = ("k2", "k3")


def penalty(batch: GroupBatch, kind: str) -> Tensor:
    """[B, G, T] derivative of minus the penalty in each token's log-probability, with x = reference - current.

    k2: x^2 / 2, derivative x; on-policy its mean gradient is that of KL(policy || reference). k3: exp(x) - x - 1
    (DeepSeekMath, 2402.03300, Eq. 4), derivative exp(x) - 1; on-policy its mean gradient is that of the other
    direction, KL(reference || policy). Not weighted by importance ratios, as in verl; TRL 1.16 multiplies k3 by r
    unless use_bias_correction_kl is off.
    """
    assert batch.reference is not None, "the learner scores the reference where learner.kl > 0"
    away = (batch.reference - batch.logp) * batch.mask
    return away if kind == "k2" else (bounded_exp(away) - 1) * batch.mask
