"""Tensors on disk, as safetensors; what the disk says of a failed write is the operating system's error."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

__all__ = ["load_file", "save_tensors"]


def save_tensors(tensors: Mapping[str, torch.Tensor], path: Path) -> None:
    """Write named tensors. Raises OSError, as any other write does."""
    try:
        save_file({name: tensor.detach().contiguous() for name, tensor in tensors.items()}, path)
    except SafetensorError as error:
        code = re.search(r"os error (\d+)", str(error))
        number = int(code[1]) if code else 0
        raise OSError(number, os.strerror(number) if number else str(error), str(path)) from error
