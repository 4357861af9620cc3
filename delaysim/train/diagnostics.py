"""The numbers every run records, the same for every estimator (docs/records.md defines each)."""

from collections.abc import Sequence
from typing import Any

import torch

from delaysim import measures
from delaysim.estimators.base import saturated
from delaysim.policy.rollout import Group
from delaysim.train.learner import Outcome


def update_row(outcome: Outcome, groups: Sequence[Group]) -> dict[str, Any]:
    """Columns of one row of `updates`, but for time."""
    batch, delays = outcome.batch, outcome.batch.delays.double()
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
        **_ratios(outcome),
        **_coefficients(outcome),
        **({} if outcome.mismatch is None else outcome.mismatch.update_columns()),
        **({} if outcome.flips is None else outcome.flips.update_columns()),
        "fresh_log_ratio": outcome.fresh_log_ratio,
        "entropy": outcome.entropy,
        "grad_norm": outcome.grad_norm,
        "grad_cos": outcome.grad_cos,
        "lr": outcome.lr,
        "tokens": int(batch.mask.sum()),
    }


def _ratios(outcome: Outcome) -> dict[str, Any]:
    """How far the mini-batch is from the current weights, whatever the estimator."""
    batch, rho, flat = outcome.batch, outcome.batch.rho, outcome.batch.log_rho.flatten()
    return {
        "ess": float(measures.ess(flat)),
        "ess_token": measures.ess_token(batch.log_rho, batch.lengths),
        "ratio_min": float(rho.min()),
        "ratio_median": float(rho.median()),
        "ratio_mean": float(rho.mean()),
        "ratio_max": float(rho.max()),
        "hill": measures.hill(flat),
        "top_share": float(measures.top_share(flat)),
        "log_ratio_sd": float(flat.std(unbiased=False)),
        "kl_mu_pi_k1": float(measures.kl_mu_pi_k1(batch).mean()),
        "kl_mu_pi_k3": float(measures.kl_mu_pi_k3(batch).mean()),
        "kl_pi_mu": float(measures.kl_pi_mu(batch).mean()),
    }


def _coefficients(outcome: Outcome) -> dict[str, Any]:
    """What the estimator made of it."""
    batch, kept, touched = outcome.batch, outcome.kept, outcome.touched
    return {
        "kept": float(kept.mean()),
        "removed": float(measures.removed(batch, kept).mean()),
        "intervention": float((touched > 0).double().mean()),
        "clip_fraction": float(touched.sum() / batch.mask.sum()),
        "second_moment": float(measures.second_moment(batch, kept).mean()),
        "kept_length_corr": measures.correlation(kept, batch.lengths),
        "kept_delay_corr": measures.correlation(kept, batch.delays[:, None].expand_as(kept)),
        "saturated": saturated(outcome.kappa),
    }


def group_rows(outcome: Outcome, groups: Sequence[Group], update: int) -> list[dict[str, Any]]:
    """One row of `groups` per consumed group."""
    values = {name: column.tolist() for name, column in _group_columns(outcome).items()}
    flips = [{}] * len(groups) if outcome.flips is None else outcome.flips.group_columns()
    return [
        {
            "update": update,
            "group": group.group,
            "version": group.version,
            "delay": update - group.version,
            "length_max": max(group.lengths),
            "length_mean": sum(group.lengths) / len(group.lengths),
            **{name: column[b] for name, column in values.items()},
            **flips[b],
        }
        for b, group in enumerate(groups)
    ]


def _group_columns(outcome: Outcome) -> dict[str, torch.Tensor]:
    batch, rho, kept, touched = outcome.batch, outcome.batch.rho, outcome.kept, outcome.touched
    return {
        "reward_mean": batch.rewards.mean(1),
        "ess": measures.ess(batch.log_rho),
        "ratio_min": rho.amin(1),
        "ratio_median": rho.median(1).values,
        "ratio_mean": rho.mean(1),
        "ratio_max": rho.amax(1),
        "top_share": measures.top_share(batch.log_rho),
        "kl_mu_pi_k1": measures.kl_mu_pi_k1(batch).mean(1),
        "kl_mu_pi_k3": measures.kl_mu_pi_k3(batch).mean(1),
        "kl_pi_mu": measures.kl_pi_mu(batch).mean(1),
        "kept": kept.mean(1),
        "removed": measures.removed(batch, kept).mean(1),
        "intervention": (touched > 0).double().mean(1),
        "clip_fraction": touched.sum(1) / batch.lengths.sum(1).clamp(min=1),
        "second_moment": measures.second_moment(batch, kept).mean(1),
        **({} if outcome.mismatch is None else outcome.mismatch.group_columns()),
    }
