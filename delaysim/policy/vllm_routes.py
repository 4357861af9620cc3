"""The experts that a vLLM engine says it used, as ours. Pure: arrays in, arrays out.

An engine that was started with `enable_return_routed_experts` gives each finished response one array [tokens, decoder
layers, experts per token], uint8 or, above 256 experts, uint16 (vLLM 0.32). It has a row for every token that went
through the model, so none for the last one sampled, and a column for every decoder layer, those without experts too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedModel

from delaysim.errors import SamplerFailed
from delaysim.policy.rollout import Routes
from delaysim.policy.routing import MISSING, Routing, routers


@dataclass(frozen=True)
class Mixture:
    """Where a model has experts, and how many."""

    layers: tuple[int, ...]
    """The decoder layers that have a router, in order."""
    depth: int
    """Decoder layers in all."""
    experts: int
    """Of one router."""
    chosen: int
    """Experts per token."""


def mixture_of(model: PreTrainedModel) -> Mixture:
    """A transformers model's. Raises UserError where it has no experts, or a router that does not name them."""
    sizes = Routing(model).sizes
    names = {module: name for name, module in model.named_modules()}
    layers = tuple(_layer(names[router]) for router, _ in routers(model))
    return Mixture(layers, model.config.get_text_config().num_hidden_layers, *sizes)


def routes_of_all(recorded: Sequence[NDArray[Any] | None], inputs: Sequence[int], mixture: Mixture) -> list[Routes]:
    """`routes_of` each response of a batch. Raises SamplerFailed also where not one has a record."""
    if all(array is None for array in recorded):
        raise SamplerFailed("the vLLM engine was asked for the experts it used and named none; use routing=none")
    return [routes_of(array, size, mixture) for array, size in zip(recorded, inputs, strict=True)]


def routes_of(recorded: NDArray[Any] | None, inputs: int, mixture: Mixture) -> Routes:
    """One response's experts, from vLLM's array, at its prompt and at all its tokens but the last: `inputs` in all.

    What is not known is MISSING, never expert 0: a response without an array; rows at the beginning, since vLLM's end
    with the last token that went through the model; and all experts of a token in a layer where an id is none of the
    layer's. Raises SamplerFailed where there are more rows, or other layers or experts per token than the model has.
    """
    routes = np.full((inputs, len(mixture.layers), mixture.chosen), MISSING, np.int16)
    if recorded is None:
        return routes
    if len(recorded) > inputs or recorded.shape[1:] != (mixture.depth, mixture.chosen):
        raise SamplerFailed(
            f"the vLLM engine named experts of shape {list(recorded.shape)}, not at most "
            f"{[inputs, mixture.depth, mixture.chosen]}"
        )
    ids = recorded[:, mixture.layers].astype(np.int32)
    known = ((ids >= 0) & (ids < mixture.experts)).all(-1, keepdims=True)
    routes[inputs - len(ids) :] = np.where(known, ids, MISSING)
    return routes


def _layer(name: str) -> int:
    """The number in a module's name, as in model.layers.3.mlp.gate."""
    return next(int(part) for part in name.split(".") if part.isdigit())
