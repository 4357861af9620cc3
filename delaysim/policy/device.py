"""Where a model runs. Whatever works on its inputs or outputs takes the device from the model."""

import torch
from transformers import PreTrainedModel

from delaysim.errors import UserError


def place(model: PreTrainedModel, devices: list[str]) -> None:
    """Move the model to the run's device. Raises UserError where this machine has no such device."""
    (name,) = devices
    count = torch.cuda.device_count()
    if name != "cpu" and int(name.removeprefix("cuda:")) >= count:
        raise UserError(f"devices=[{name}]: torch sees {count} CUDA devices; use devices=[cpu], or see docs/gpu.md")
    model.to(name)  # type: ignore[arg-type]
