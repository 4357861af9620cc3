"""Checkpoints: weights and optimiser in safetensors, and a pointer that says how far every file had got."""

import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from transformers import PreTrainedModel

from delaysim.errors import RunFailed
from delaysim.files import read_json, write_json
from delaysim.tensors import load_file, save_tensors
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


class Checkpoints:
    """The checkpoints of one run directory; only the last is kept."""

    def __init__(self, run: Path) -> None:
        self._run = run

    def read(self) -> Pointer | None:
        """The last complete checkpoint, None where there is none."""
        path = self._run / POINTER
        return Pointer(**read_json(path)) if path.exists() else None

    def save_weights(self, update: int, model: PreTrainedModel, learner: Learner) -> str:
        """Write a folder of weights and optimiser; it counts only once the pointer names it."""
        name = f"checkpoints/{update:08d}"
        folder, part = self._run / name, self._run / f"{name}.part"
        for stale in (folder, part):
            shutil.rmtree(stale, ignore_errors=True)
        part.mkdir(parents=True)
        save_tensors(dict(model.named_parameters()), part / "model.safetensors")
        save_tensors(learner.optimiser_state(), part / "optimiser.safetensors")
        part.rename(folder)
        return name

    def point(self, pointer: Pointer) -> None:
        """Make this the checkpoint to go on from, and remove the folders it supersedes."""
        write_json(self._run / POINTER, asdict(pointer))
        for folder in (self._run / "checkpoints").glob("*"):
            if f"checkpoints/{folder.name}" != pointer.weights:
                shutil.rmtree(folder, ignore_errors=True)

    def load(self, pointer: Pointer, model: PreTrainedModel, learner: Learner) -> None:
        """Put a checkpoint's weights and optimiser in place. Raises RunFailed when they cannot be read."""
        if pointer.weights is None:
            return
        folder = self._run / pointer.weights
        load_weights(folder, model)
        learner.load_optimiser_state(_read(folder / "optimiser.safetensors"))


def load_weights(folder: Path, model: PreTrainedModel) -> None:
    """Put the weights of a checkpoint folder in place. Raises RunFailed when they cannot be read."""
    tensors = _read(folder / "model.safetensors")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(tensors[name])


def _read(file: Path) -> dict[str, torch.Tensor]:
    try:
        return load_file(file)
    except Exception as error:
        raise RunFailed(f"the checkpoint {file.parent} cannot be read ({error}): resume=never starts over") from error
