"""M2PO (2510.01161): the clip range follows from a budget for the second moment of the log-ratio. Two public rules.

authors: among harmful tokens (A > 0 and r > 1, or A < 0 and r < 1) the largest common cap on |log r| whose capped mean
square stays within the budget; PPO's clip at exp(+-cap). The cap is the sorted value below the exact root, as in their
repository. areal: over all tokens, drop the largest (behaviour - proximal)^2 until the mean of the rest is below it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, sqrt
from typing import TYPE_CHECKING

from delaysim.estimators.base import LOG_KAPPA_BOUND, GroupBatch, Recipe, ppo_clip

if TYPE_CHECKING:
    from torch import Tensor

TINY = 1e-12
"""The authors' margin around ties."""

SCOPE = "batch"
LEVEL = "token"
NEEDS = ("advantages", "proximal")
DIAL = ("budget",)
CHOICES = {"rule": ("authors", "areal")}
PUBLISHED = Recipe("group_norm", "token_mean")


@dataclass
class Params:
    """Published: budget 0.04; `eps` sets budget."""

    name: str = "m2po"
    rule: str = "authors"
    """authors | areal."""
    budget: float = 0.04
    """Largest second moment of the log-ratio [nats^2]."""


def coefficients(batch: GroupBatch, params: Params) -> Tensor:
    """Kappa [B, G, T] = r on the tokens kept by the rule, else 0."""
    if params.rule == "areal":
        return batch.ratio * batch.mask * _within_budget(batch, params.budget)
    return ppo_clip(batch, *_bounds(batch, params.budget))


def _bounds(batch: GroupBatch, budget: float) -> tuple[float, float]:
    """Ratio bounds of the authors' rule; (0, inf) where the harmful tokens are within the budget."""
    advantage = batch.advantage.expand_as(batch.mask)
    good, bad = (advantage > TINY) & (batch.ratio > 1 + TINY), (advantage < -TINY) & (batch.ratio < 1 - TINY)
    squares = batch.log_ratio[(good | bad) & (batch.mask > 0)].pow(2).sort().values
    n = len(squares)
    if n == 0 or float(squares.mean()) <= budget + TINY:
        return 0.0, inf
    rest = n - squares.new_ones(n).cumsum(0)
    over = (squares - TINY) * rest + squares.cumsum(0) >= budget * n - TINY
    first = int(over.double().argmax())
    cap = sqrt(max(float(squares[first - 1]) - TINY, 0.0)) if first else 0.0
    return exp(-cap), exp(min(cap, LOG_KAPPA_BOUND))


def _within_budget(batch: GroupBatch, budget: float) -> Tensor:
    """AReaL's mask [B, G, T]: at least the token with the least square is kept."""
    present = batch.mask > 0
    squares, order = (batch.behaviour - batch.anchor)[present].pow(2).sort()
    means = squares.cumsum(0) / squares.new_ones(len(squares)).cumsum(0)
    fits = int((means < budget).sum())  # the running mean of sorted values never falls
    kept = squares.new_zeros(len(squares)).bool()
    kept[order[: max(fits, 1)]] = True
    return present.masked_scatter(present, kept)
