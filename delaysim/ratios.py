"""ratios.bin: what estimators saw, update by update, so that others can be asked without a model. No torch.

A sequence of frames, each eight bytes of length and a safetensors block. Appended like rows, cut back like rows.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from delaysim.errors import UserError

Array = NDArray[Any]
HEADER = struct.Struct("<q")
BYTES_PER_TOKEN = 8
"""Disk space of a recorded token: two float32."""


@dataclass(frozen=True)
class Recorded:
    """One mini-batch of B groups of G responses; token arrays hold the responses one after the other."""

    update: int
    logp: Array
    """[tokens] current log-probabilities [nats], float32 as the model gave them."""
    behaviour: Array
    """[tokens] behaviour log-probabilities; equal to `logp` at delay 0."""
    lengths: Array
    """[B, G] tokens."""
    rewards: Array
    """[B, G]."""
    advantages: Array
    """[B, G] as trained on."""
    delays: Array
    """[B] updates."""
    groups: Array
    """[B] group ids."""
    proximal: Array | None = None
    """[tokens], where there were several steps on the mini-batch."""
    versions: Array | None = None
    """[B]; None = update minus delay."""
    sampler: Array | None = None
    """[tokens] the sampler's log-probabilities at launch, where `recomputed` stands beside them."""
    recomputed: Array | None = None
    """[tokens] the learner's at launch."""


def frame(recorded: Recorded) -> bytes:
    """One mini-batch as bytes to append."""
    arrays: dict[str, Array] = {
        "update": np.array([recorded.update], np.int64),
        "logp": recorded.logp.astype(np.float32),
        "behaviour": recorded.behaviour.astype(np.float32),
        "lengths": recorded.lengths.astype(np.int32),
        "rewards": recorded.rewards.astype(np.float64),
        "advantages": recorded.advantages.astype(np.float64),
        "delays": recorded.delays.astype(np.int64),
        "groups": recorded.groups.astype(np.int64),
    }
    for name in ("proximal", "sampler", "recomputed"):
        if (values := getattr(recorded, name)) is not None:
            arrays[name] = values.astype(np.float32)
    block = save(arrays)
    return HEADER.pack(len(block)) + block


def read_frames(path: Path) -> Iterator[Recorded]:
    """Every whole frame of a file, one at a time; a torn last one is left out. Raises UserError on another format."""
    with path.open("rb") as file:
        while len(head := file.read(HEADER.size)) == HEADER.size:
            (size,) = HEADER.unpack(head)
            if not 0 < size < 1 << 40:
                raise UserError(f"{path} is not a record of ratios: a frame of {size} bytes")
            block = file.read(size)
            if len(block) < size:
                return
            yield _recorded(path, block)


def _recorded(path: Path, block: bytes) -> Recorded:
    try:
        arrays = load(block)
        return Recorded(update=int(arrays.pop("update")[0]), **arrays)
    except Exception as error:
        raise UserError(f"{path} is not a record of ratios: {error}") from None
