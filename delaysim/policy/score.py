"""Log-probabilities of given responses under the current weights, with gradients.

Responses to one prompt may share a sequence, the prompt standing in it once: a block mask keeps them apart and each
continues the prompt's positions, so the numbers are those of every response alone and the prompt is computed once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from delaysim.policy.precision import at_least_float32, own_casts
from delaysim.policy.rollout import Ids, Logps, Response


@dataclass(frozen=True)
class Row:
    """A prompt and the response to score."""

    prompt: Ids
    response: Ids


Recompute = Callable[[Sequence[Row]], list[Logps]]
"""The learner's log-probabilities of given responses under some weights."""


def recomputed(prompts: Sequence[Ids], responses: Sequence[Response], recompute: Recompute) -> list[Response]:
    """The responses, equally many to each prompt, with the learner's own log-probabilities beside the sampler's."""
    size = len(responses) // len(prompts)
    logps = recompute([Row(prompts[i // size], response.tokens) for i, response in enumerate(responses)])
    return [replace(response, recomputed=logp) for response, logp in zip(responses, logps, strict=True)]


@dataclass(frozen=True)
class Scores:
    """Log-probabilities of all response tokens of a batch."""

    logp: torch.Tensor
    """[tokens] nats, on the model's device; carries gradients when scored with them."""
    entropy: torch.Tensor
    """[tokens] softmax entropy of the current weights at each response token [nats], on the model's device."""
    row: torch.Tensor
    """[tokens] which row a token belongs to, on the CPU."""
    position: torch.Tensor
    """[tokens] its position in the response, on the CPU."""

    def padded(self, rows: int, values: torch.Tensor, width: int | None = None) -> torch.Tensor:
        """[rows, width] the token values laid out by row on the CPU, 0 on padding; null = as wide as the longest."""
        out = torch.zeros(rows, int(self.position.max()) + 1 if width is None else width, dtype=values.dtype)
        out[self.row, self.position] = values.cpu()
        return out

    def flat(self, table: torch.Tensor) -> torch.Tensor:
        """[tokens] of a table [rows, T] on the CPU, ready to multiply the log-probabilities."""
        return table[self.row, self.position].to(self.logp)

    def detached(self) -> "Scores":
        """Without the graph."""
        return Scores(self.logp.detach(), self.entropy, self.row, self.position)


@dataclass(frozen=True)
class Pack:
    """Rows that share one prompt and one sequence."""

    prompt: Ids
    rows: list[int]
    length: int
    """Tokens in the sequence."""


def score(model: PreTrainedModel, rows: Sequence[Row], temperature: float, bucket: int, pack: int = 0) -> Scores:
    """Score every row, `bucket` sequences at a time, sequences of like length together.

    Neighbouring rows with one prompt share a sequence of up to `pack` tokens; 0 = every row has its own.
    """
    return together([score_packs(model, rows, packs, temperature) for packs in buckets(model, rows, bucket, pack)])


def together(parts: Sequence[Scores]) -> Scores:
    """The scores of several parts of a batch as one."""
    columns = zip(*((part.logp, part.entropy, part.row, part.position) for part in parts), strict=True)
    return Scores(*map(torch.cat, columns))


def buckets(
    model: PreTrainedModel, rows: Sequence[Row], bucket: int, pack: int, tokens: int | None = None
) -> list[list[Pack]]:
    """What goes through the model together: `bucket` sequences and, with padding, `tokens` tokens at most; or one."""
    pack = min(pack, tokens or pack) if accepts_any_mask(model) else 0
    found: list[list[Pack]] = []
    for p in sorted(packed(rows, pack), key=lambda p: (p.length, p.rows)):
        full = not found or len(found[-1]) == bucket
        if full or (tokens is not None and (len(found[-1]) + 1) * p.length > tokens):  # p is the longest so far
            found.append([])
        found[-1].append(p)
    return found


def accepts_any_mask(model: PreTrainedModel) -> bool:
    """Whether every layer attends to all it is shown; a sliding window must build its own mask."""
    config = model.config.get_text_config()
    layers = getattr(config, "layer_types", None) or ["full_attention"]
    return set(layers) == {"full_attention"} and not getattr(config, "sliding_window", None)


def packed(rows: Sequence[Row], pack: int) -> list[Pack]:
    """Rows in order, in sequences of at most `pack` tokens or one row."""
    packs: list[Pack] = []
    for i, row in enumerate(rows):
        last = packs[-1] if packs else None
        if last and last.length + len(row.response) <= pack and np.array_equal(last.prompt, row.prompt):
            packs[-1] = Pack(last.prompt, [*last.rows, i], last.length + len(row.response))
        else:
            packs.append(Pack(row.prompt, [i], len(row.prompt) + len(row.response)))
    return packs


def score_packs(
    model: PreTrainedModel, rows: Sequence[Row], packs: Sequence[Pack], temperature: float, logits: int | None = None
) -> Scores:
    """Score one bucket. At most `logits` response tokens have their logits in memory at once; None = all of them."""
    layout, device = _layout(rows, packs), model.device
    shared = {}
    if any(len(p.rows) > 1 for p in packs):  # else right padding needs no mask: nothing attends to what follows it
        positions = torch.from_numpy(layout.positions).to(device)
        shared = {"attention_mask": layout.mask(model.dtype).to(device), "position_ids": positions}
    ids = torch.from_numpy(layout.ids).to(device)
    hidden = model.get_decoder()(input_ids=ids, use_cache=False, **shared).last_hidden_state
    hidden = hidden.flatten(0, 1)[torch.from_numpy(layout.at).to(device)]
    target = torch.from_numpy(layout.target).to(device)
    head = model.get_output_embeddings()
    if logits is None or len(target) <= logits:
        logp, entropy = _of_logits(head, temperature, hidden, target)
    else:
        logp, entropy = _in_chunks(head, temperature, hidden, target, logits)
    return Scores(logp, entropy, torch.from_numpy(layout.row), torch.from_numpy(layout.position))


def _of_logits(
    head: torch.nn.Module, temperature: float, hidden: torch.Tensor, target: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """[tokens] log-probabilities of the targets, and [tokens] entropies."""
    logits = at_least_float32(head(hidden)) / temperature
    log_probabilities = logits.log_softmax(-1)
    logp = log_probabilities.gather(1, target[:, None])[:, 0]
    with torch.no_grad():
        entropy = torch.special.entr(log_probabilities.exp()).sum(-1)
    return logp, entropy


def _in_chunks(
    head: torch.nn.Module, temperature: float, hidden: torch.Tensor, target: torch.Tensor, chunk: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same, a chunk at a time: its logits are let go and computed again in the backward pass."""
    parts = []
    with own_casts(hidden.device):
        for some, wanted in zip(hidden.split(chunk), target.split(chunk), strict=True):
            arguments = head, temperature, some, wanted
            if torch.is_grad_enabled():
                parts.append(checkpoint(_of_logits, *arguments, use_reentrant=False, preserve_rng_state=False))
            else:
                parts.append(_of_logits(*arguments))
    logp, entropy = (torch.cat(column) for column in zip(*parts, strict=True))
    return logp, entropy


@dataclass(frozen=True)
class _Layout:
    """Sequences right-padded to one width, and for every response token where its prediction stands."""

    ids: NDArray[np.int64]
    """[sequences, width]."""
    positions: NDArray[np.int64]
    """[sequences, width] each response goes on from its prompt."""
    segments: NDArray[np.int64]
    """[sequences, width] 0 = prompt, 1.. = responses, -1 = padding."""
    at: NDArray[np.int64]
    """[tokens] flat index of the position that predicts the token."""
    target: NDArray[np.int64]
    row: NDArray[np.int64]
    position: NDArray[np.int64]

    def mask(self, dtype: torch.dtype) -> torch.Tensor:
        """[sequences, 1, width, width] additive: causal, within the prompt and the token's own response."""
        width = self.ids.shape[1]
        own = (self.segments[:, None, :] == 0) | (self.segments[:, None, :] == self.segments[:, :, None])
        hidden = torch.from_numpy(~(own & np.tri(width, dtype=bool)))[:, None]
        return torch.zeros(hidden.shape, dtype=dtype).masked_fill_(hidden, torch.finfo(dtype).min)


def _layout(rows: Sequence[Row], packs: Sequence[Pack]) -> _Layout:
    shape = len(packs), max(p.length for p in packs)
    ids, positions, segments = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.full(shape, -1)
    at, target, row, position = [], [], [], []
    for k, p in enumerate(packs):
        start = len(p.prompt)
        ids[k, :start], positions[k, :start], segments[k, :start] = p.prompt, np.arange(start), 0
        column = start
        for segment, i in enumerate(p.rows, 1):
            steps = np.arange(len(rows[i].response))
            place = slice(column, column + len(steps))
            ids[k, place], positions[k, place], segments[k, place] = rows[i].response, start + steps, segment
            before = np.where(steps == 0, start - 1, column + steps - 1)
            at.append(k * shape[1] + before)
            target.append(rows[i].response.astype(np.int64))
            row.append(np.full(len(steps), i))
            position.append(steps)
            column += len(steps)
    return _Layout(ids, positions, segments, *(np.concatenate(part) for part in (at, target, row, position)))
