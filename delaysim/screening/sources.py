"""Where recorded mini-batches come from: run directories, their ratios.bin, or JSON lines of groups from elsewhere."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from delaysim.errors import UserError
from delaysim.estimators.base import GroupBatch
from delaysim.ratios import Array, Recorded, read_frames
from delaysim.screening.jsonlines import read_groups


@dataclass(frozen=True)
class Batch:
    """Mini-batches one after the other, and the ids of their groups."""

    groups: list[int]
    data: GroupBatch
    sizes: list[int]
    """Groups of each mini-batch."""


def read(paths: list[Path], groups_per_batch: int, tokens: int = 0, mismatch: bool = False) -> Iterator[Batch]:
    """Every recorded mini-batch, neighbours put together up to `tokens`. Raises UserError where there is none.

    A run's mini-batches are as it trained on them; a file of groups is cut into `groups_per_batch` in its order.
    `tokens` counts padding; 0 gives one mini-batch at a time. With `mismatch` the log-ratio is that
    between sampler and learner at launch, and the delay is 0.
    """
    for path in paths:
        records = _recorded(path, groups_per_batch)
        yield from map(_batch, _together(_mismatch_alone(path, records) if mismatch else records, tokens))


def _mismatch_alone(path: Path, records: Iterator[Recorded]) -> Iterator[Recorded]:
    for r in records:
        if r.sampler is None or r.recomputed is None:
            raise UserError(f"{path} has the log-probabilities of one engine only: run with behaviour=recomputed")
        none = np.zeros_like(r.delays)
        yield replace(r, logp=r.recomputed, behaviour=r.sampler, delays=none, versions=None, proximal=None)


def _recorded(path: Path, groups_per_batch: int) -> Iterator[Recorded]:
    if path.suffix in (".jsonl", ".json"):
        yield from read_groups(path, groups_per_batch)
    else:
        for file in _record_files(path):
            yield from read_frames(file)


def _together(records: Iterator[Recorded], tokens: int) -> Iterator[list[Recorded]]:
    """Neighbours of one kind, up to so many tokens."""
    waiting: list[Recorded] = []
    for recorded in records:
        if waiting and (_tokens([*waiting, recorded]) > tokens or _kind(recorded) != _kind(waiting[0])):
            yield waiting
            waiting = []
        waiting.append(recorded)
    if waiting:
        yield waiting


def _tokens(records: list[Recorded]) -> int:
    """Size of their token arrays once padded to one length."""
    return sum(r.lengths.size for r in records) * max(int(r.lengths.max()) for r in records)


def _kind(recorded: Recorded) -> tuple[int, bool, bool]:
    return recorded.lengths.shape[1], recorded.proximal is None, recorded.versions is None


def _record_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise UserError(f"{path}: there is no such run directory or file of groups (.jsonl)")
    files = [file for file in sorted(path.rglob("ratios.bin")) if file.stat().st_size]
    if not files:
        raise UserError(f"{path} has no recorded ratios: run again with record.ratios=all resume=never")
    return files


def _batch(records: list[Recorded]) -> Batch:
    def joined(name: str) -> Array:
        return np.concatenate([getattr(recorded, name) for recorded in records])

    lengths = joined("lengths")
    mask = np.arange(max(1, int(lengths.max()))) < lengths[..., None]
    updates = np.concatenate([np.full(len(r.delays), r.update) for r in records])
    logp = _padded(joined("logp"), mask)
    data = GroupBatch(
        logp=logp,
        behaviour=_padded(joined("behaviour"), mask),
        mask=torch.from_numpy(mask).to(logp),
        rewards=torch.from_numpy(joined("rewards")),
        advantages=torch.from_numpy(joined("advantages")),
        delays=torch.from_numpy(joined("delays")),
        versions=torch.from_numpy(updates - joined("delays") if records[0].versions is None else joined("versions")),
        proximal=None if records[0].proximal is None else _padded(joined("proximal"), mask),
    )
    return Batch(joined("groups").tolist(), data, [len(recorded.groups) for recorded in records])


def _padded(flat: Array, mask: Array) -> torch.Tensor:
    """[B, G, T] of the tokens of responses one after the other."""
    out = np.zeros(mask.shape)
    out[mask] = flat
    return torch.from_numpy(out)
