"""The numbers every run records, the same for every estimator (docs/records.md defines each)."""

from collections.abc import Sequence
from typing import Any

import torch

from delaysim.estimators.base import bounded_exp, kept, saturated
from delaysim.policy.rollout import Group
from delaysim.train.learner import Outcome


def ess(log_rho: torch.Tensor) -> float:
    """(sum rho)^2 / sum rho^2 / n over the mini-batch, in log space; 1 = every response counts alike."""
    flat = log_rho.flatten()
    return float((2 * flat.logsumexp(0) - (2 * flat).logsumexp(0)).exp()) / flat.numel()


def update_row(outcome: Outcome, groups: Sequence[Group]) -> dict[str, Any]:
    """Columns of one row of `updates`, but for time."""
    batch, part = outcome.batch, kept(outcome.batch, outcome.kappa)
    rho, delays = bounded_exp(batch.log_rho), batch.delays.double()
    responses = [response for group in groups for response in group.responses]
    return {
        "reward_mean": float(batch.rewards.mean()),
        "delay_mean": float(delays.mean()),
        "delay_p50": float(delays.quantile(0.5)),
        "delay_p95": float(delays.quantile(0.95)),
        "delay_max": int(batch.delays.max()),
        "length_mean": float(batch.lengths.mean()),
        "truncated": sum(not response.finished for response in responses) / len(responses),
        "mixed": float((batch.rewards.amax(1) > batch.rewards.amin(1)).double().mean()),
        "ess": ess(batch.log_rho),
        "ratio_mean": float(rho.mean()),
        "ratio_median": float(rho.median()),
        "ratio_max": float(rho.max()),
        "log_ratio_sd": float(batch.log_rho.std(unbiased=False)),
        "fresh_log_ratio": outcome.fresh_log_ratio,
        "kept": float(part.kappa.mean()),
        "removed": float(part.removed.mean()),
        "saturated": saturated(outcome.kappa),
        "entropy": outcome.entropy,
        "grad_norm": outcome.grad_norm,
        "lr": outcome.lr,
        "tokens": int(batch.mask.sum()),
    }


def group_rows(outcome: Outcome, groups: Sequence[Group], update: int) -> list[dict[str, Any]]:
    """One row of `groups` per consumed group."""
    batch, part = outcome.batch, kept(outcome.batch, outcome.kappa)
    columns = {
        "reward_mean": batch.rewards.mean(1),
        "ratio_mean": bounded_exp(batch.log_rho).mean(1),
        "ratio_max": bounded_exp(batch.log_rho).amax(1),
        "kept": part.kappa.mean(1),
        "removed": part.removed.mean(1),
    }
    values = {name: column.tolist() for name, column in columns.items()}
    return [
        {
            "update": update,
            "group": group.group,
            "version": group.version,
            "delay": update - group.version,
            "length_max": max(group.lengths),
            "length_mean": sum(group.lengths) / len(group.lengths),
            **{name: column[b] for name, column in values.items()},
        }
        for b, group in enumerate(groups)
    ]
