"""Prompts and responses laid out for one pass through the model: what shares a sequence, and what stands where."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from delaysim.policy.rollout import Ids, Routes
from delaysim.policy.routing import MISSING


@dataclass(frozen=True)
class Row:
    """A prompt and the response to score."""

    prompt: Ids
    response: Ids
    routes: Routes | None = None
    """Experts to use again; None, and MISSING ids, leave the choice to the model's routers."""


@dataclass(frozen=True)
class Pack:
    """Rows that share one prompt and one sequence."""

    prompt: Ids
    rows: list[int]
    length: int
    """Tokens in the sequence."""


def packed(rows: Sequence[Row], pack: int) -> list[Pack]:
    """Rows in order, in sequences of at most `pack` tokens or one row."""
    packs: list[Pack] = []
    for i, row in enumerate(rows):
        last = packs[-1] if packs else None
        if last and last.length + len(row.response) <= pack and _alike_at_the_prompt(rows[last.rows[0]], row):
            packs[-1] = Pack(last.prompt, [*last.rows, i], last.length + len(row.response))
        else:
            packs.append(Pack(row.prompt, [i], len(row.prompt) + len(row.response)))
    return packs


def _alike_at_the_prompt(a: Row, b: Row) -> bool:
    """Whether two rows agree at their prompts, in tokens and in the experts to use there."""
    if not np.array_equal(a.prompt, b.prompt):
        return False
    if a.routes is None or b.routes is None:
        return a.routes is b.routes
    return np.array_equal(a.routes[: len(a.prompt)], b.routes[: len(b.prompt)])


@dataclass(frozen=True)
class Layout:
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

    def inputs(self, packs: Sequence[Pack]) -> dict[int, NDArray[np.int64]]:
        """By row, the flat indices of what goes in for it: its prompt and its tokens but the last."""
        width, found = self.ids.shape[1], {}
        for k, p in enumerate(packs):
            prompt = np.flatnonzero(self.segments[k] == 0)
            for segment, row in enumerate(p.rows, 1):
                own = np.flatnonzero(self.segments[k] == segment)
                found[row] = k * width + np.concatenate((prompt, own[:-1]))
        return found

    def mask(self, dtype: torch.dtype) -> torch.Tensor:
        """[sequences, 1, width, width] additive: causal, within the prompt and the token's own response."""
        width = self.ids.shape[1]
        own = (self.segments[:, None, :] == 0) | (self.segments[:, None, :] == self.segments[:, :, None])
        hidden = torch.from_numpy(~(own & np.tri(width, dtype=bool)))[:, None]
        return torch.zeros(hidden.shape, dtype=dtype).masked_fill_(hidden, torch.finfo(dtype).min)


def layout_of(rows: Sequence[Row], packs: Sequence[Pack]) -> Layout:
    """Of these packs of the rows."""
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
    return Layout(ids, positions, segments, *(np.concatenate(part) for part in (at, target, row, position)))


def forced(
    rows: Sequence[Row], inputs: Mapping[int, NDArray[np.int64]], positions: int, device: torch.device
) -> torch.Tensor | None:
    """[positions, layers, experts per token] what the rows bring, laid out as the pass is. Raises ValueError."""
    brought = {i: routes for i in inputs if (routes := rows[i].routes) is not None}
    if not brought:
        return None
    table = np.full((positions, *next(iter(brought.values())).shape[1:]), MISSING, np.int64)
    for i, routes in brought.items():
        if len(routes) != len(inputs[i]):
            raise ValueError(f"row {i} brings experts of {len(routes)} tokens and has {len(inputs[i])}")
        table[inputs[i]] = routes
    return torch.from_numpy(table).to(device)


def filled(routes: Routes, chosen: Routes) -> Routes:
    """The experts that a pass used: those it was given, and where they are MISSING those that its routers chose."""
    return np.where((routes == MISSING).any(-1, keepdims=True), chosen, routes)


def split(experts: torch.Tensor, inputs: Mapping[int, NDArray[np.int64]]) -> dict[int, Routes]:
    """By row, of what a pass used [positions, layers, experts per token]."""
    table = experts.numpy()
    return {row: table[places] for row, places in inputs.items()}
