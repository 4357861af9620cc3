"""Where a model runs. Whatever works on its inputs or outputs takes the device from the model."""

import torch
from transformers import PreTrainedModel

from delaysim.errors import UserError


def place(model: PreTrainedModel, devices: list[str]) -> None:
    """Move the model to the learner's device. Raises UserError where this machine lacks one of the devices."""
    count = torch.cuda.device_count()
    for name in devices:
        if name != "cpu" and int(name.removeprefix("cuda:")) >= count:
            raise UserError(f"devices: torch sees {count} CUDA devices, no {name}; use devices=[cpu] (docs/gpu.md)")
    model.to(devices[0])  # type: ignore[arg-type]
