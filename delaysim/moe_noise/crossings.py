"""How often each estimator acts on the log-ratio, and how often on routing noise alone."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch

from delaysim import measures
from delaysim.estimators import discover, make
from delaysim.estimators.base import GroupBatch
from delaysim.estimators.interface import Estimator
from delaysim.moe_noise.parts import REPLAYS, Array, Passes
from delaysim.moe_noise.setting import GROUP

ALONE = "alone"
TIPPED = "tipped"
"""Acted on without replay, and not with R3."""
CASES = (*REPLAYS, TIPPED, ALONE)


def with_threshold() -> list[Estimator]:
    """Every built-in that has one, at its published value: by level, token first."""
    found = [estimator for name in discover() if (estimator := make(name)).eps is not None]
    order = ("token", "sequence", "trajectory")
    return sorted(found, key=lambda e: order.index(e.level))


def crossings(
    passes: Passes, estimators: Sequence[Estimator], advantages: Array, delay: int, length: int | None = None
) -> dict[str, dict[str, float]]:
    """By estimator and one of CASES, the share of tokens (of responses, at the other levels) that it acts on.

    The first `length` tokens of every sequence; null = all. `advantages` [groups, G]. An estimator acts on a token
    whose coefficient is not its plain ratio, where it would be if the two policies agreed. `alone`: C's own experts in
    place of A's are the only difference.
    """
    batches = _batches(passes, advantages, delay, length)
    found = {}
    for estimator in estimators:
        acts = {case: acted(batch, estimator) for case, batch in batches.items()}
        acts[TIPPED] = acts["none"] & ~acts["r3"]
        found[estimator.name] = {case: float(acts[case].double().mean()) for case in CASES}
    return found


def acted(batch: GroupBatch, estimator: Estimator) -> torch.Tensor:
    """[B, G, T] tokens; at the level of sequences and trajectories all tokens of a response are alike."""
    agreeing = replace(batch, behaviour=batch.logp, proximal=batch.logp)
    hit, anyway = (measures.off(b, estimator.coefficients(b), estimator.level) for b in (batch, agreeing))
    return hit & ~anyway


def _batches(passes: Passes, advantages: Array, delay: int, length: int | None) -> Mapping[str, GroupBatch]:
    """The proximal policy is B as the replay has it."""
    logps = {
        "none": (passes.c, passes.a, passes.b),
        "r2": (passes.c_b, passes.a, passes.b),
        "r3": (passes.c_a, passes.a, passes.b_a),
        ALONE: (passes.c, passes.c_a, passes.c_a),
    }
    return {case: _batch(logp, advantages, delay, length) for case, logp in logps.items()}


def _batch(logps: tuple[Array, Array, Array], advantages: Array, delay: int, length: int | None) -> GroupBatch:
    groups = len(advantages)
    logp, behaviour, proximal = (
        torch.from_numpy(np.ascontiguousarray(table[:, :length])).view(groups, GROUP, -1) for table in logps
    )
    given = torch.from_numpy(advantages)
    return GroupBatch(
        logp=logp,
        behaviour=behaviour,
        mask=torch.ones_like(logp),
        rewards=given,
        advantages=given,
        delays=torch.full((groups,), delay),
        versions=torch.zeros(groups, dtype=torch.long),
        proximal=proximal,
    )
