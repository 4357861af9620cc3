"""How a learner scores: in micro-batches whose graphs are held one at a time, in the precision it is set to."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import torch
from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer

from delaysim.errors import UserError
from delaysim.policy.layout import Pack, Row, filled
from delaysim.policy.precision import autocast
from delaysim.policy.rescore import Rescored
from delaysim.policy.rollout import Routes
from delaysim.policy.routing import Routing, watching
from delaysim.policy.score import Scores, buckets, score_packs, together
from delaysim.settings.config import LearnerConf
from delaysim.settings.routing import R3, RoutingConf

MicroBatch = list[list[Pack]]
"""Buckets whose graphs are held together: one of at most `learner.tokens`, or all of the mini-batch."""


class Scorer:
    """Log-probabilities under one model."""

    def __init__(
        self, model: PreTrainedModel, conf: LearnerConf, temperature: float, routing: Routing | None = None
    ) -> None:
        """With `routing`, of this model, passes and their backward belong inside its `watching`."""
        self.model, self._conf, self._temperature = model, conf, temperature
        self.routing = routing
        if conf.gradient_checkpointing:
            _enable_recomputing(model, routing)

    def micro_batches(self, rows: Sequence[Row]) -> list[MicroBatch]:
        """All rows, split by the token budget."""
        conf = self._conf
        found = buckets(self.model, rows, conf.bucket, conf.pack, conf.tokens)
        return [found] if conf.tokens is None else [[bucket] for bucket in found]

    def score(self, rows: Sequence[Row], parts: Sequence[MicroBatch]) -> Scores:
        """The rows in these micro-batches."""
        with (
            autocast(self.model.device, self._conf.autocasts),
            recomputing(self.model, self._conf.gradient_checkpointing),
        ):
            return together([self._bucket(rows, packs) for part in parts for packs in part])

    def _bucket(self, rows: Sequence[Row], packs: Sequence[Pack]) -> Scores:
        return score_packs(self.model, rows, packs, self._temperature, self._conf.logits, self.routing)


@torch.no_grad()
def rescored(
    conf: LearnerConf, temperature: float, routing: RoutingConf, model: PreTrainedModel, rows: Sequence[Row]
) -> list[Rescored]:
    """What a pass over the rows says under a model's present weights, as an update scores them."""
    if routing.replay != R3:
        rows = [replace(row, routes=None) for row in rows]
    found = Routing(model) if routing.watched else None
    scorer = Scorer(model, replace(conf, gradient_checkpointing=False), temperature, found)
    with watching(found):
        scores = scorer.score(rows, scorer.micro_batches(rows))
    table = scores.padded(len(rows), scores.logp.float()).cpu().numpy()
    return [
        Rescored(table[i, : len(row.response)].copy(), _used(row, scores.chosen.get(i))) for i, row in enumerate(rows)
    ]


def _used(row: Row, chosen: Routes | None) -> Routes | None:
    return chosen if row.routes is None or chosen is None else filled(row.routes, chosen)


def _enable_recomputing(model: PreTrainedModel, routing: Routing | None) -> None:
    if not model.supports_gradient_checkpointing:
        raise UserError(
            f"learner.gradient_checkpointing=true: a model of type {model.config.model_type} cannot; drop it"
        )
    again = {} if routing is None else {"context_fn": routing.contexts}
    model.gradient_checkpointing_enable({"use_reentrant": False, "preserve_rng_state": False, **again})


@contextmanager
def recomputing(model: PreTrainedModel, on: bool) -> Iterator[None]:
    """Keep no activations inside layers: the backward pass computes each layer again (gradient checkpointing).

    A layer does so only where it believes to be training; what is inside it stays in evaluation mode, without dropout.
    """
    on = on and torch.is_grad_enabled()
    layers = [m for m in model.modules() if isinstance(m, GradientCheckpointingLayer)] if on else []
    for layer in layers:
        layer.training = True
    try:
        yield
    finally:
        for layer in layers:
            layer.training = False
