"""Checkpoints: weights and optimiser in safetensors, and a pointer that says how far every file had got."""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from transformers import PreTrainedModel

from delaysim.errors import RunFailed
from delaysim.files import read_json, write_json
from delaysim.policy.lagging import Lagging
from delaysim.tensors import load_shards, save_shards
from delaysim.train.gradient import trained
from delaysim.train.learner import Learner

POINTER = "checkpoint.json"


@dataclass(frozen=True)
class Pointer:
    """Where a run can go on from."""

    update: int
    """Updates done."""
    weights: str | None
    """Folder of the weights and optimiser; None = the base weights."""
    sizes: Mapping[str, int]
    """Bytes of each append-only file."""
    syncs: int = 0
    """What was done to bring weights to a sampler that lags behind, counted."""


class Checkpoints:
    """The checkpoints of one run directory; only the last is kept."""

    def __init__(self, run: Path) -> None:
        self._run = run

    def read(self) -> Pointer | None:
        """The last complete checkpoint, None where there is none."""
        path = self._run / POINTER
        return Pointer(**read_json(path)) if path.exists() else None

    def save_weights(
        self,
        update: int,
        model: PreTrainedModel,
        optimiser: Mapping[str, torch.Tensor],
        lagging: Mapping[str, Mapping[str, torch.Tensor]] | None = None,
        syncs: int = 0,
    ) -> str:
        """Write a folder of what is trained and its optimiser; it counts only once the pointer names it.

        `lagging`: weights of a sampler of its own, by file; they change with `syncs` too.
        """
        name = f"checkpoints/{update:08d}" + (f"-{syncs}" if syncs else "")
        folder, part = self._run / name, self._run / f"{name}.part"
        for stale in (folder, part):
            shutil.rmtree(stale, ignore_errors=True)
        part.mkdir(parents=True)
        save_shards(dict(trained(model)), part, "model")
        for stem, tensors in {"optimiser": optimiser, **(lagging or {})}.items():
            save_shards(tensors, part, stem)
        part.rename(folder)
        return name

    def point(self, pointer: Pointer) -> None:
        """Make this the checkpoint to go on from, and remove the folders it supersedes."""
        write_json(self._run / POINTER, asdict(pointer))
        self.forget_others(pointer)

    def forget_others(self, pointer: Pointer) -> None:
        """Remove what a checkpoint supersedes, or a run left that was killed before it had."""
        for folder in (self._run / "checkpoints").glob("*"):
            if f"checkpoints/{folder.name}" != pointer.weights:
                shutil.rmtree(folder, ignore_errors=True)

    def load(self, pointer: Pointer, model: PreTrainedModel, learner: Learner) -> None:
        """Put a checkpoint's weights and optimiser in place. Raises RunFailed when they cannot be read."""
        if pointer.weights is None:
            return
        folder = self._run / pointer.weights
        load_weights(folder, model)
        with _readable(folder):
            for shard in load_shards(folder, "optimiser"):
                learner.load_optimiser_state(shard)

    def load_lagging(self, pointer: Pointer, lagging: Lagging) -> None:
        """Put the weights of a sampler of its own in place, after the learner's. Raises RunFailed like `load`."""
        if pointer.weights is None:
            return
        folder = self._run / pointer.weights
        with _readable(folder):
            files = {stem: load_shards(folder, stem) for stem in lagging.files}
            lagging.load(pointer.update, {stem: _together(shards) for stem, shards in files.items()})


def load_weights(folder: Path, model: PreTrainedModel) -> None:
    """Put the weights of a checkpoint's folder in place, a file at a time; of a model with adapters, the adapters.

    Raises RunFailed when they cannot be read.
    """
    wanted = dict(trained(model))
    with torch.no_grad(), _readable(folder):
        for shard in load_shards(folder, "model"):
            for name, tensor in shard.items():
                wanted.pop(name).copy_(tensor)
        if wanted:
            raise KeyError(f"it lacks {next(iter(wanted))}")


def _together(shards: Iterable[Mapping[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    return {name: tensor for shard in shards for name, tensor in shard.items()}


@contextmanager
def _readable(folder: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise RunFailed(f"the checkpoint {folder} cannot be read ({error}): resume=never starts over") from error
