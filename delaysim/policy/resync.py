"""After weights are published, sampler and learner score one fixed batch: an engine with other weights is found out."""

from collections.abc import Sequence
from math import isfinite

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

from delaysim.errors import SamplerFailed
from delaysim.policy.layout import Row
from delaysim.policy.rollout import Ids
from delaysim.policy.score import score
from delaysim.rng import stream

SEQUENCES, LENGTH, DECODED = 4, 24, 2
"""Sequences of the fixed batch, tokens of each, and tokens that the sampler adds to each."""
FLOOR = {"float32": 3e-4, "bfloat16": 1.0}
"""Largest difference allowed [nats], by the coarser precision of the two sides (docs/vllm.md has the measurements)."""
FLOOR_OF_MIXTURES = {"float32": 3e-4, "bfloat16": 0.1}
"""The same of the median over tokens: a token for which the two sides choose other experts may move by nats."""


def fixed_batch(vocabulary: int) -> list[Ids]:
    """Token ids, the same for every run of a vocabulary; no text, so that every weight has a say."""
    return [stream(0, "resync", i).integers(0, vocabulary, LENGTH).astype(np.int32) for i in range(SEQUENCES)]


def learner_logp(model: PreTrainedModel, sequences: Sequence[Ids]) -> NDArray[np.float32]:
    """[sequences, tokens - 1] log-probability of every token after the first, at temperature 1 [nats]."""
    rows = [Row(sequence[:1], sequence[1:]) for sequence in sequences]
    with torch.no_grad():
        scores = score(model, rows, temperature=1.0, bucket=len(rows))
    return scores.padded(len(rows), scores.logp).cpu().numpy()


def floor_of(kinds: Sequence[str], experts: bool) -> float:
    """The largest difference allowed between sides of these precisions; the largest median with `experts` [nats]."""
    return max((FLOOR_OF_MIXTURES if experts else FLOOR)[kind] for kind in kinds)


def require_same(differences: NDArray[np.float64], floor: float, version: int, experts: bool) -> None:
    """Raise SamplerFailed where the two sides differ by more than the floor, in the median with `experts` [nats]."""
    gap = float(np.median(differences) if experts else differences.max())
    if not (isfinite(gap) and gap <= floor):
        raise SamplerFailed(
            f"after version {version} was published the sampler's log-probabilities of a fixed batch differ from the "
            f"learner's by {gap:.2g} nats{' in the median' if experts else ''}, above sampler.floor={floor:g}: it "
            "computes with other weights"
        )
