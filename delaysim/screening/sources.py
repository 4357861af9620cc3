"""Where recorded mini-batches come from: run directories, their ratios.bin, or JSON lines of groups from elsewhere."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from delaysim.errors import UserError
from delaysim.estimators.base import GroupBatch
from delaysim.ratios import Array, Recorded, read_frames
from delaysim.screening.jsonlines import read_groups


@dataclass(frozen=True)
class Batch:
    """One mini-batch and the ids of its groups."""

    groups: list[int]
    data: GroupBatch


def read(paths: list[Path], groups_per_batch: int) -> Iterator[Batch]:
    """Every recorded mini-batch, one at a time. Raises UserError where there is nothing to read.

    A run's mini-batches are as it trained on them; a file of groups is cut into `groups_per_batch` in its order.
    """
    for path in paths:
        if path.suffix in (".jsonl", ".json"):
            yield from map(_batch, read_groups(path, groups_per_batch))
        else:
            for file in _record_files(path):
                yield from map(_batch, read_frames(file))


def _record_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise UserError(f"{path}: there is no such run directory or file of groups (.jsonl)")
    files = [file for file in sorted(path.rglob("ratios.bin")) if file.stat().st_size]
    if not files:
        raise UserError(f"{path} has no recorded ratios: run again with record.ratios=all resume=never")
    return files


def _batch(recorded: Recorded) -> Batch:
    mask = np.arange(max(1, int(recorded.lengths.max()))) < recorded.lengths[..., None]
    delays = torch.from_numpy(recorded.delays)
    logp = _padded(recorded.logp, mask)
    data = GroupBatch(
        logp=logp,
        behaviour=_padded(recorded.behaviour, mask),
        mask=torch.from_numpy(mask).to(logp),
        rewards=torch.from_numpy(recorded.rewards),
        advantages=torch.from_numpy(recorded.advantages),
        delays=delays,
        versions=recorded.update - delays if recorded.versions is None else torch.from_numpy(recorded.versions),
        proximal=None if recorded.proximal is None else _padded(recorded.proximal, mask),
    )
    return Batch(recorded.groups.tolist(), data)


def _padded(flat: Array, mask: Array) -> torch.Tensor:
    """[B, G, T] of the tokens of responses one after the other."""
    out = np.zeros(mask.shape)
    out[mask] = flat
    return torch.from_numpy(out)
