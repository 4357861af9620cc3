"""mu-GRPO (2605.17570): a relaxed clip for many steps on one mini-batch, and a veto within bad responses.

A reading of third-party notes: the paper's text was not available, and there is no public code. Known: stages of up to
1024 updates per rollout batch (`learner.updates_per_batch`), a relaxed clip, and, where A < 0, no gradient on any token
after the first whose ratio crosses a threshold. Open, hence settings: the relaxed range, the threshold, which side
crosses it, and whether the crossing token itself is silenced.
"""

from dataclasses import dataclass
from math import log

from delaysim.estimators.base import unclipped

SCOPE = "response"
NEEDS = ("advantages",)
CHOICES = {"side": ("below", "above", "either")}


@dataclass
class Params:
    """Every number here is a choice of this reading."""

    eps: float = 0.5
    """Relaxed clip range."""
    trigger: float = 2.0
    """A ratio below 1 / trigger, or above trigger, vetoes what follows."""
    side: str = "below"
    """below | above | either: which crossing counts."""
    inclusive: bool = False
    """True = the crossing token is silenced too."""


def coefficients(batch, params):
    """Kappa [B, G, T] = r where the relaxed clip does not bind and no veto holds, else 0."""
    free = unclipped(batch.ratio, batch.advantage, 1 - params.eps, 1 + params.eps)
    return batch.ratio * free * batch.mask * ~vetoed(batch, params)


def vetoed(batch, params):
    """True [B, G, T] behind the first crossing of a response with A < 0."""
    bound, log_r = log(params.trigger), batch.log_ratio
    crossings = {"below": log_r < -bound, "above": log_r > bound, "either": log_r.abs() > bound}
    crossed = crossings[params.side] & (batch.advantage < 0)
    seen = crossed.long().cumsum(-1)
    return (seen if params.inclusive else seen - crossed.long()) > 0
