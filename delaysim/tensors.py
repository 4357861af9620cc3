"""Tensors on disk, as safetensors; what the disk says of a failed write is the operating system's error."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

__all__ = ["load_file", "load_shards", "save_shards", "save_tensors"]

SHARD_BYTES = 2 << 30
"""Of tensors on another device no more than this is copied to the CPU at once."""


def save_tensors(tensors: Mapping[str, torch.Tensor], path: Path) -> None:
    """Write named tensors. Raises OSError, as any other write does."""
    try:
        save_file({name: tensor.detach().contiguous() for name, tensor in tensors.items()}, path)
    except SafetensorError as error:
        code = re.search(r"os error (\d+)", str(error))
        number = int(code[1]) if code else 0
        raise OSError(number, os.strerror(number) if number else str(error), str(path)) from error


def save_shards(tensors: Mapping[str, torch.Tensor], folder: Path, stem: str) -> None:
    """Write named tensors as STEM.safetensors, or where that would be large as STEM-00001-of-0000N.safetensors, ..."""
    shards: list[dict[str, torch.Tensor]] = [{}]
    size = 0
    for name, tensor in tensors.items():
        if shards[-1] and size + tensor.nbytes > SHARD_BYTES:
            shards.append({})
            size = 0
        shards[-1][name] = tensor
        size += tensor.nbytes
    for path, shard in zip(_names(folder, stem, len(shards)), shards, strict=True):
        save_tensors(shard, path)


def load_shards(folder: Path, stem: str) -> Iterator[dict[str, torch.Tensor]]:
    """What `save_shards` wrote, a file at a time. Raises FileNotFoundError where one is missing."""
    first = next(iter(folder.glob(f"{stem}-00001-of-*.safetensors")), None)
    count = 1 if first is None else int(first.stem.rsplit("-", 1)[1])
    for path in _names(folder, stem, count):
        yield load_file(path)


def _names(folder: Path, stem: str, count: int) -> list[Path]:
    if count == 1:
        return [folder / f"{stem}.safetensors"]
    return [folder / f"{stem}-{i:05}-of-{count:05}.safetensors" for i in range(1, count + 1)]
