"""Low-rank adapters beside frozen weights, by peft. The model stays the object that samples and is trained."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

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
