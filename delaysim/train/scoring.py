"""How a learner scores: in micro-batches whose graphs are held one at a time, in the precision it is set to."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer

from delaysim.errors import UserError
from delaysim.policy.precision import autocast
from delaysim.policy.rollout import Logps
from delaysim.policy.score import Pack, Row, Scores, buckets, score_packs, together
from delaysim.settings.config import LearnerConf

MicroBatch = list[list[Pack]]
"""Buckets whose graphs are held together: one of at most `learner.tokens`, or all of the mini-batch."""


class Scorer:
    """Log-probabilities under one model."""

    def __init__(self, model: PreTrainedModel, conf: LearnerConf, temperature: float) -> None:
        self.model, self._conf, self._temperature = model, conf, temperature
        if conf.gradient_checkpointing:
            _enable_recomputing(model)

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
        return score_packs(self.model, rows, packs, self._temperature, self._conf.logits)


@torch.no_grad()
def logps(scorer: Scorer, rows: Sequence[Row]) -> list[Logps]:
    """Each row's log-probabilities under the present weights, as an update scores them."""
    scores = scorer.score(rows, scorer.micro_batches(rows))
    table = scores.padded(len(rows), scores.logp.float()).cpu().numpy()
    return [table[i, : len(row.response)].copy() for i, row in enumerate(rows)]


def logps_of(conf: LearnerConf, temperature: float, model: PreTrainedModel, rows: Sequence[Row]) -> list[Logps]:
    """The same of another copy of the model."""
    return logps(Scorer(model, conf, temperature), rows)


def _enable_recomputing(model: PreTrainedModel) -> None:
    if not model.supports_gradient_checkpointing:
        raise UserError(
            f"learner.gradient_checkpointing=true: a model of type {model.config.model_type} cannot; drop it"
        )
    if not model.is_gradient_checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False, "preserve_rng_state": False})


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
