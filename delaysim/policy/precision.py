"""What models compute in: float32 weights run in bfloat16 where asked, logits normalised in float32 or better."""

from contextlib import AbstractContextManager, nullcontext

import torch


def autocast(device: torch.device, on: bool) -> AbstractContextManager[None]:
    """Matrix products in bfloat16, the weights staying as they are; `on=False` changes nothing."""
    return torch.autocast(device.type, torch.bfloat16) if on else nullcontext()


def own_casts(device: torch.device) -> AbstractContextManager[None]:
    """Under autocast, cast a weight at every use: uses that share one cast have their gradients summed in bfloat16."""
    if device.type == "meta" or not torch.is_autocast_enabled(device.type):
        return nullcontext()
    return torch.autocast(device.type, torch.get_autocast_dtype(device.type), cache_enabled=False)


def at_least_float32(values: torch.Tensor) -> torch.Tensor:
    """The values in float32, or in float64 where they are."""
    return values.to(torch.promote_types(values.dtype, torch.float32))
