"""Log-probabilities of given responses under the current weights, with gradients."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from transformers import PreTrainedModel

from delaysim.rollout import Ids


@dataclass(frozen=True)
class Row:
    """A prompt and the response to score."""

    prompt: Ids
    response: Ids


@dataclass(frozen=True)
class Scores:
    """Log-probabilities of all response tokens of a batch, rows one after another."""

    logp: torch.Tensor
    """[tokens] nats; carries gradients when scored with them."""
    entropy: torch.Tensor
    """[tokens] softmax entropy of the weights at each response token [nats]."""
    row: torch.Tensor
    """[tokens] which row a token belongs to."""
    position: torch.Tensor
    """[tokens] its position in the response."""

    def padded(self, rows: int, values: torch.Tensor) -> torch.Tensor:
        """[rows, T] the token values laid out by row, 0 on padding."""
        out = values.new_zeros(rows, int(self.position.max()) + 1)
        out[self.row, self.position] = values
        return out

    def flat(self, table: torch.Tensor) -> torch.Tensor:
        """[tokens] of a table [rows, T]."""
        return table[self.row, self.position]


def score(model: PreTrainedModel, rows: Sequence[Row], temperature: float, bucket: int) -> Scores:
    """Score every row; rows of like length are padded together in buckets of `bucket`."""
    parts = [_score_bucket(model, rows, indices, temperature) for indices in buckets(rows, bucket)]
    logp, entropy, row, position = (torch.cat(column) for column in zip(*parts, strict=True))
    return Scores(logp, entropy, row, position)


def buckets(rows: Sequence[Row], size: int) -> Iterator[list[int]]:
    """Row indices by total length, `size` at a time."""
    order = sorted(range(len(rows)), key=lambda i: (len(rows[i].prompt) + len(rows[i].response), i))
    for start in range(0, len(order), size):
        yield order[start : start + size]


def _score_bucket(
    model: PreTrainedModel, rows: Sequence[Row], indices: list[int], temperature: float
) -> tuple[torch.Tensor, ...]:
    # Right padding: no real token attends to padding in a causal model, so no mask is needed.
    ids, at, row, position = _layout(rows, indices)
    hidden = model.get_decoder()(input_ids=ids, use_cache=False).last_hidden_state
    logits = model.get_output_embeddings()(hidden.flatten(0, 1)[at]).float() / temperature
    log_probabilities = logits.log_softmax(-1)
    target = torch.from_numpy(np.concatenate([rows[i].response for i in indices]).astype(np.int64))
    logp = log_probabilities.gather(1, target[:, None])[:, 0]
    with torch.no_grad():
        entropy = torch.special.entr(log_probabilities.exp()).sum(-1)
    return logp, entropy, row, position


def _layout(
    rows: Sequence[Row], indices: list[int]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Padded ids [rows, width], and for each response token: where its logit stands, its row, its position."""
    width = max(len(rows[i].prompt) + len(rows[i].response) for i in indices)
    ids = np.zeros((len(indices), width), np.int64)
    at, row, position = [], [], []
    for k, i in enumerate(indices):
        p, t = len(rows[i].prompt), len(rows[i].response)
        ids[k, :p], ids[k, p : p + t] = rows[i].prompt, rows[i].response
        at.append(np.arange(k * width + p - 1, k * width + p - 1 + t))
        row.append(np.full(t, i))
        position.append(np.arange(t))
    flat = (torch.from_numpy(np.concatenate(part)) for part in (at, row, position))
    return torch.from_numpy(ids), *flat
