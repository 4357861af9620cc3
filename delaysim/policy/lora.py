"""Low-rank adapters beside frozen weights, by peft. The model stays the object that samples and is trained."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import torch
from transformers import PreTrainedModel

from delaysim.errors import UserError
from delaysim.settings.models import LoraConf


def add_adapters(model: PreTrainedModel, conf: LoraConf, rank: int, seed: int) -> None:
    """Freeze the weights and add float32 adapters, which change nothing before their first step.

    Raises UserError where peft is missing or no layer has such a name.
    """
    if find_spec("peft") is None:
        raise UserError(f"model.lora.rank={rank} needs peft: pip install 'delaysim[lora]'")
    from peft import LoraConfig

    targets = "all-linear" if conf.targets == ["all-linear"] else list(conf.targets)
    config = LoraConfig(r=rank, lora_alpha=conf.alpha, target_modules=targets, task_type="CAUSAL_LM")
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        try:
            model.add_adapter(config)
        except ValueError as error:
            raise UserError(f"model.lora.targets={','.join(conf.targets)}: {str(error).splitlines()[0]}") from error
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.float()
    model.eval()


def has_adapters(model: PreTrainedModel) -> bool:
    """Whether only adapters are trained."""
    return bool(model._hf_peft_config_loaded)


def base_of(model: PreTrainedModel) -> PreTrainedModel:
    """A model that keeps the weights from before training: itself, its adapters to be taken off, or a copy."""
    return model if has_adapters(model) else copy.deepcopy(model)


@contextmanager
def adapters_off(model: PreTrainedModel) -> Iterator[None]:
    """The model as it was before training, where adapters are all that was trained."""
    if not has_adapters(model):
        yield
        return
    model.disable_adapters()
    try:
        yield
    finally:
        model.enable_adapters()


def base_parameters(model: PreTrainedModel) -> dict[str, torch.Tensor]:
    """The model's weights without its adapters, under the names they have without them."""
    named = {name: weight.detach() for name, weight in model.named_parameters() if ".lora_" not in name}
    return {name.replace(".base_layer", ""): weight for name, weight in named.items()}


def merger(model: PreTrainedModel) -> Callable[[torch.Tensor], torch.Tensor]:
    """A function of one base weight: it with its adapter's product added in float32, or as it is where it has none."""
    if not has_adapters(model):
        return lambda weight: weight
    from peft.tuners.lora import LoraLayer

    layers = {_weight(layer).data_ptr(): layer for layer in model.modules() if isinstance(layer, LoraLayer)}

    @torch.no_grad()
    def merge(weight: torch.Tensor) -> torch.Tensor:
        if weight.data_ptr() not in layers:
            return weight
        layer: Any = layers[weight.data_ptr()]
        products = (layer.get_delta_weight(adapter) for adapter in layer.active_adapters)
        return sum(products, weight.float()).to(weight.dtype)

    return merge


def _weight(layer: Any) -> torch.Tensor:
    """The tensor an adapter stands beside: a linear map's, or a layer's experts in one."""
    return layer.get_param() if hasattr(layer, "parameter_name") else layer.get_base_layer().weight  # type: ignore[no-any-return]
