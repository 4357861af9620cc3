"""The weights that an engine is given: under a checkpoint's names, experts one by one, adapters merged.

They come one decoder layer at a time: what is merged or converted is never there for the whole model.
"""

from collections.abc import Iterator
from itertools import groupby

import torch
from transformers import PreTrainedModel
from transformers.core_model_loading import revert_weight_conversion

from delaysim.policy.lora import base_parameters, merger


def published(model: PreTrainedModel, untied: bool) -> Iterator[tuple[str, torch.Tensor]]:
    """Names and weights as in a checkpoint of the architecture; `untied` gives a tied head a name of its own."""
    named = base_parameters(model)
    if untied:
        head = model.get_output_embeddings()
        name = next(name for name, module in model.named_modules() if module is head)
        named[f"{name}.weight"] = head.weight.detach()
    merge = merger(model)
    for _, names in groupby(named, key=_layer):
        yield from revert_weight_conversion(model, {name: merge(named[name]) for name in names}).items()


def _layer(name: str) -> str:
    """Of model.layers.3.mlp.up_proj.weight: model.layers.3; of what is in no layer, the name itself."""
    words = name.split(".")
    number = next((i for i, word in enumerate(words) if word.isdigit()), len(words) - 1)
    return ".".join(words[: number + 1])
