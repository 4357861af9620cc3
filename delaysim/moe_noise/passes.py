"""Three engines over the same tokens, with and without each other's experts: what the numbers are made of."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from transformers import PreTrainedModel, Qwen3MoeForCausalLM

from delaysim.moe_noise.chain import MarkovChain, Tokens
from delaysim.moe_noise.model import Progress, Updates, build, engine, rows_of, teach
from delaysim.moe_noise.parts import Array, Passes
from delaysim.moe_noise.setting import Setting
from delaysim.policy.layout import Row, packed
from delaysim.policy.rollout import Routes
from delaysim.policy.routing import Routing, watching
from delaysim.policy.score import score_packs, together
from delaysim.train.flips import Compared, compared

BUCKET = 8
"""Sequences that go through a model together."""


class Scored(NamedTuple):
    """What one pass says."""

    logp: Array
    """[sequences, T]."""
    routes: list[Routes]
    """What its routers chose, by sequence; of a dense model empty."""


def passes(setting: Setting, seed: int, dense: bool, progress: Progress) -> Iterator[tuple[int, Passes]]:
    """One seed's model at every delay: (delay [updates], passes)."""
    chain = MarkovChain(seed)
    learner = build(setting, seed, dense)
    teach(learner, chain, setting, progress)
    rows = rows_of(evaluated(setting, chain))
    a = scored(engine(setting, learner), rows)
    start = copy.deepcopy(learner)
    b, b_a = scored(start, rows), scored(start, rows, a.routes)
    updates = Updates(learner, chain)
    for delay in setting.delays:
        updates.until(delay, progress)
        c, c_b, c_a = (scored(learner, rows, forced) for forced in ((), b.routes, a.routes))
        flips = {name: flipped(x, y) for name, x, y in (("ab", a, b), ("bc", b, c), ("ac", a, c)) if x.routes}
        yield delay, Passes(a.logp, b.logp, b_a.logp, c.logp, c_b.logp, c_a.logp, flips)


def flipped(one: Scored, other: Scored) -> Compared:
    """[sequences, T, layers] where the routers of two passes chose other experts."""
    return np.stack([compared(x, y) for x, y in zip(one.routes, other.routes, strict=True)])


def evaluated(setting: Setting, chain: MarkovChain) -> Tokens:
    """[sequences, 1 + length] the text that all engines score."""
    return chain.draw("moe_noise/evaluated", 0, setting.sequences, setting.length + 1)


@torch.no_grad()
def scored(model: PreTrainedModel, rows: Sequence[Row], routes: Sequence[Routes] = ()) -> Scored:
    """One pass over all rows, with these experts or those that the model's routers choose; a dense model has none."""
    routing = Routing(model) if isinstance(model, Qwen3MoeForCausalLM) else None
    if routes:
        rows = [replace(row, routes=forced) for row, forced in zip(rows, routes, strict=True)]
    packs = packed(rows, 0)
    with watching(routing):
        parts = [
            score_packs(model, rows, packs[i : i + BUCKET], 1.0, routing=routing) for i in range(0, len(rows), BUCKET)
        ]
    scores = together(parts)
    logp = scores.padded(len(rows), scores.logp.double()).numpy()
    return Scored(logp, [scores.chosen[i] for i in sorted(scores.chosen)])
