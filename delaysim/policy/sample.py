"""Batched, KV-cached sampling with a transformers model, finished rows retired on the way."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from transformers import DynamicCache, PreTrainedModel

from delaysim.policy.noise import GumbelNoise
from delaysim.policy.precision import at_least_float32, autocast
from delaysim.policy.rollout import Ids, Response
from delaysim.policy.routing import Routing, watching
from delaysim.policy.score import accepts_any_mask
from delaysim.policy.trail import Trail

RETIRE_SHARE = 0.25
"""Finished rows leave the batch once they are this share of it."""


@dataclass(frozen=True)
class Decoding:
    """How to choose tokens."""

    max_new_tokens: int
    temperature: float
    """0 = greedy; the log-probabilities are then those at temperature 1."""
    stop_ids: frozenset[int]
    autocast: bool = False
    """Run a float32 model in bfloat16, as its learner does."""
    routes: bool = False
    """Record which experts each token used, of a mixture of experts."""


@torch.inference_mode()
def sample(
    model: PreTrainedModel, prompts: Sequence[Ids], repeat: int, decoding: Decoding, noise: GumbelNoise | None
) -> list[Response]:
    """`repeat` responses to each prompt, in order. `noise` has one row per response; None decodes greedily."""
    with autocast(model.device, decoding.autocast), watching(Routing(model) if decoding.routes else None) as routing:
        return _sample(model, prompts, repeat, decoding, noise, routing)


def _sample(
    model: PreTrainedModel,
    prompts: Sequence[Ids],
    repeat: int,
    decoding: Decoding,
    noise: GumbelNoise | None,
    routing: Routing | None,
) -> list[Response]:
    batch = _Batch.prefill(model, prompts, repeat)
    trail = None if routing is None else Trail(routing, [len(prompt) for prompt in prompts], repeat)
    stop = torch.tensor(sorted(decoding.stop_ids))
    for position in range(decoding.max_new_tokens):
        logits = at_least_float32(batch.logits)
        if decoding.temperature > 0:
            logits = logits / decoding.temperature
        logp = logits.log_softmax(-1)
        token = (logits if noise is None else logits + noise.at(position).to(logits.device)).argmax(-1)
        chosen = token.cpu()
        batch.record(chosen, logp.gather(1, token[:, None])[:, 0].cpu(), torch.isin(chosen, stop))
        if batch.all_finished or position == decoding.max_new_tokens - 1:
            break
        batch.advance(model, token, noise)
        if trail is not None:
            trail.step(batch.row)
    return batch.responses(trail)


@dataclass
class _Batch:
    """Rows under way. `row` maps the live rows to the original ones."""

    cache: DynamicCache
    logits: torch.Tensor
    mask: torch.Tensor
    """Attention mask over the columns so far: [rows, 1, 1, columns] additive, or [rows, columns] for transformers to
    build its own from, where a layer does not attend to everything."""
    position: torch.Tensor
    """[rows] next position id."""
    row: list[int]
    done: torch.Tensor
    """[rows] on the CPU, like all that decides what to do next."""
    tokens: list[list[int]] = field(default_factory=list)
    logps: list[list[float]] = field(default_factory=list)
    finished: list[bool] = field(default_factory=list)

    @classmethod
    def prefill(cls, model: PreTrainedModel, prompts: Sequence[Ids], repeat: int) -> "_Batch":
        width, rows = max(map(len, prompts)), len(prompts) * repeat
        ids = torch.zeros(len(prompts), width, dtype=torch.long)
        attend = torch.zeros(len(prompts), width, dtype=torch.long)
        for i, prompt in enumerate(prompts):
            ids[i, width - len(prompt) :] = torch.from_numpy(prompt.astype(np.int64))
            attend[i, width - len(prompt) :] = 1
        ids, attend = ids.to(model.device), attend.to(model.device)
        cache = DynamicCache()
        positions = (attend.cumsum(-1) - 1).clamp(min=0)
        logits = model(
            input_ids=ids, attention_mask=attend, position_ids=positions, past_key_values=cache, logits_to_keep=1
        ).logits[:, -1]
        cache.batch_repeat_interleave(repeat)
        mask = attend.repeat_interleave(repeat, 0)
        if accepts_any_mask(model):
            hidden = (mask == 0)[:, None, None, :]
            lowest = torch.finfo(model.dtype).min
            mask = torch.zeros(hidden.shape, dtype=model.dtype, device=model.device).masked_fill_(hidden, lowest)
        lengths = attend.sum(-1).repeat_interleave(repeat)
        tokens: list[list[int]] = [[] for _ in range(rows)]
        logps: list[list[float]] = [[] for _ in range(rows)]
        return cls(
            cache, logits.repeat_interleave(repeat, 0), mask, lengths, list(range(rows)),
            torch.zeros(rows, dtype=torch.bool), tokens, logps, [False] * rows,
        )  # fmt: skip

    @property
    def all_finished(self) -> bool:
        return bool(self.done.all())

    def record(self, token: torch.Tensor, logp: torch.Tensor, stopped: torch.Tensor) -> None:
        already = self.done.tolist()
        for row, over, t, lp, stops in zip(
            self.row, already, token.tolist(), logp.tolist(), stopped.tolist(), strict=True
        ):
            if not over:
                self.tokens[row].append(t)
                self.logps[row].append(lp)
                self.finished[row] = stops
        self.done = self.done | stopped

    def advance(self, model: PreTrainedModel, token: torch.Tensor, noise: GumbelNoise | None) -> None:
        """Feed the chosen tokens; rows that are finished may leave first."""
        if int(self.done.sum()) >= RETIRE_SHARE * len(self.row):
            token = self._retire(token, noise)
        self.mask = torch.nn.functional.pad(self.mask, (0, 1), value=0 if self.mask.is_floating_point() else 1)
        self.logits = model(
            input_ids=token[:, None],
            attention_mask=self.mask,
            position_ids=self.position[:, None],
            past_key_values=self.cache,
        ).logits[:, -1]
        self.position = self.position + 1

    def _retire(self, token: torch.Tensor, noise: GumbelNoise | None) -> torch.Tensor:
        index = (~self.done).nonzero()[:, 0]
        rows = index.tolist()
        live = index.to(token.device)
        self.cache.batch_select_indices(live)
        self.mask, self.position, self.done = self.mask[live], self.position[live], self.done[index]
        self.row = [self.row[row] for row in rows]
        if noise is not None:
            noise.keep(rows, index)
        return token[live]

    def responses(self, trail: Trail | None) -> list[Response]:
        routes = [None] * len(self.tokens) if trail is None else trail.routes([len(tokens) for tokens in self.tokens])
        columns = zip(self.tokens, self.logps, self.finished, routes, strict=True)
        return [
            Response(np.array(tokens, np.int32), np.array(logps, np.float32), finished, routes=experts)
            for tokens, logps, finished, experts in columns
        ]
