"""Log-probabilities of given responses under the current weights, with gradients.

Responses to one prompt may share a sequence, the prompt standing in it once: a block mask keeps them apart and each
continues the prompt's positions, so the numbers are those of every response alone and the prompt is computed once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from delaysim.policy.layout import Pack, Row, forced, layout_of, packed, split
from delaysim.policy.precision import at_least_float32, own_casts
from delaysim.policy.rollout import Routes
from delaysim.policy.routing import Routing


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
    chosen: Mapping[int, Routes] = field(default_factory=dict)
    """By row, the experts that the model's routers chose, used or not; empty where nobody watches them."""

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
        return replace(self, logp=self.logp.detach())


def score(model: PreTrainedModel, rows: Sequence[Row], temperature: float, bucket: int, pack: int = 0) -> Scores:
    """Score every row, `bucket` sequences at a time, sequences of like length together.

    Neighbouring rows with one prompt share a sequence of up to `pack` tokens; 0 = every row has its own.
    """
    return together([score_packs(model, rows, packs, temperature) for packs in buckets(model, rows, bucket, pack)])


def together(parts: Sequence[Scores]) -> Scores:
    """The scores of several parts of a batch as one."""
    columns = zip(*((part.logp, part.entropy, part.row, part.position) for part in parts), strict=True)
    logp, entropy, row, position = map(torch.cat, columns)
    return Scores(logp, entropy, row, position, {i: routes for part in parts for i, routes in part.chosen.items()})


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


def score_packs(
    model: PreTrainedModel,
    rows: Sequence[Row],
    packs: Sequence[Pack],
    temperature: float,
    logits: int | None = None,
    routing: Routing | None = None,
) -> Scores:
    """Score one bucket. At most `logits` response tokens have their logits in memory at once; None = all of them.

    With `routing`, rows use the experts they bring, and those that the routers choose are recorded.
    """
    layout, device = layout_of(rows, packs), model.device
    inputs = layout.inputs(packs) if routing is not None else {}
    if routing is not None:
        routing.force(forced(rows, inputs, layout.ids.size, device))
    shared = {}
    if any(len(p.rows) > 1 for p in packs):  # else right padding needs no mask: nothing attends to what follows it
        positions = torch.from_numpy(layout.positions).to(device)
        shared = {"attention_mask": layout.mask(model.dtype).to(device), "position_ids": positions}
    ids = torch.from_numpy(layout.ids).to(device)
    hidden = model.get_decoder()(input_ids=ids, use_cache=False, **shared).last_hidden_state
    chosen = {} if routing is None else split(routing.chosen(), inputs)
    hidden = hidden.flatten(0, 1)[torch.from_numpy(layout.at).to(device)]
    target = torch.from_numpy(layout.target).to(device)
    head = model.get_output_embeddings()
    if logits is None or len(target) <= logits:
        logp, entropy = _of_logits(head, temperature, hidden, target)
    else:
        logp, entropy = _in_chunks(head, temperature, hidden, target, logits)
    row, position = torch.from_numpy(layout.row), torch.from_numpy(layout.position)
    return Scores(logp, entropy, row, position, chosen)


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
