"""Which experts each token used: recorded from the routers of a mixture of experts, and forced on them again.

By hooks on any transformers model whose router returns logits, weights and expert ids. Only ids are replayed: weights
are gathered from the live router's softmax over all experts, so that a forced expert keeps its weight and the router
its gradient (docs/moe.md).
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property, partial
from typing import Any

import torch
from transformers import PreTrainedModel
from transformers.utils.output_capturing import OutputRecorder

from delaysim.errors import UserError

MISSING = -1
"""Stands for an expert that is not known: there the router chooses all of them for itself."""
Rule = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""Weights of the experts chosen [positions, experts per token], from all logits [positions, experts] and the ids."""


class Routing:
    """The routers of one model, in the order of its layers. Raises UserError where it has none."""

    def __init__(self, model: PreTrainedModel) -> None:
        self._routers = [_Router(module, logits) for module, logits in routers(model)]
        if not self._routers:
            raise UserError(
                f"routing: a model of type {model.config.model_type} has no experts; "
                "use routing=none and drop routing.lag and routing.record"
            )
        self.sizes: tuple[int, int] = self._routers[0].sizes
        """Experts of a router, and how many of them each token uses."""
        self._forced: torch.Tensor | None = None
        self._chosen: dict[int, torch.Tensor] = {}

    @contextmanager
    def watching(self) -> Iterator["Routing"]:
        """Hooks in place: `force` and `chosen` work; passes through the model and their backward belong inside."""
        handles = [r.module.register_forward_hook(partial(self._pass, i)) for i, r in enumerate(self._routers)]
        try:
            yield self
        finally:
            self.force(None)
            self._chosen.clear()
            for handle in handles:
                handle.remove()

    def force(self, experts: torch.Tensor | None) -> None:
        """Use these experts [positions, layers, experts per token] in the next passes, but where they are MISSING.

        Positions are those of a pass, flattened. None lets the routers choose. Raises ValueError where there are not as
        many layers, and a pass where its positions are others; UserError like `require_known_weights`.
        """
        if experts is not None:
            self.require_known_weights()
            if experts.dim() != 3 or experts.shape[1] != len(self._routers):
                raise ValueError(f"experts of shape {tuple(experts.shape)} for {len(self._routers)} layers")
        self._forced = experts

    def require_known_weights(self) -> None:
        """Raise UserError where the model does not weigh its experts by a softmax of the logits."""
        for router in self._routers:
            router.require_known_weights()

    def chosen(self) -> torch.Tensor:
        """[positions, layers, experts per token] what the live routers chose in the last pass, forced or not."""
        return torch.stack([self._chosen[i] for i in range(len(self._routers))], 1).to("cpu", torch.int16)

    def contexts(self) -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
        """For torch's checkpoint: layers that are computed again in the backward pass use the experts of their pass."""
        return nullcontext(), self._again(self._forced)

    @contextmanager
    def _again(self, experts: torch.Tensor | None) -> Iterator[None]:
        before, self._forced = self._forced, experts
        try:
            yield
        finally:
            self._forced = before

    def _pass(self, layer: int, _module: torch.nn.Module, _inputs: Any, output: tuple[torch.Tensor, ...]) -> Any:
        router = self._routers[layer]
        self._chosen[layer] = output[router.ids].detach()
        if self._forced is None:
            return None
        return router.replaced(output, self._forced[:, layer])


class _Router:
    """One layer's router: where its output has what, and how it weighs the experts it chose."""

    def __init__(self, module: torch.nn.Module, logits: int) -> None:
        self.module, self._logits = module, logits
        output = _probe(module)
        self.ids = next(i for i, value in enumerate(output) if not value.is_floating_point())
        self._weights = next(i for i, value in enumerate(output) if i not in (logits, self.ids))
        self.sizes = output[logits].shape[-1], output[self.ids].shape[-1]

    @cached_property
    def _rule(self) -> Rule | None:
        """How it weighs the experts it chose. Told in float32: rounded to bfloat16, two rules can look the same."""
        output = _probe(copy.deepcopy(self.module).float())
        logits, weights, ids = (output[i] for i in (self._logits, self._weights, self.ids))
        return next((rule for rule in RULES if torch.equal(rule(logits, ids), weights)), None)

    def require_known_weights(self) -> None:
        if self._rule is None:
            raise UserError(
                f"routing: {type(self.module).__name__} does not weigh experts by a softmax of its logits, so they "
                "cannot be replayed; use routing=none"
            )

    def replaced(self, output: tuple[torch.Tensor, ...], forced: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The router's output with these experts [positions, experts per token]."""
        logits, ids = output[self._logits], output[self.ids]
        if forced.shape != ids.shape:
            raise ValueError(
                f"experts for {tuple(forced.shape)} positions and choices, the pass has {tuple(ids.shape)}"
            )
        assert self._rule is not None
        ids = torch.where((forced == MISSING).any(-1, keepdim=True), ids, forced)
        new = list(output)
        new[self.ids], new[self._weights] = ids, self._rule(logits, ids).to(output[self._weights].dtype)
        return tuple(new)


def routers(model: PreTrainedModel) -> list[tuple[torch.nn.Module, int]]:
    """The model's routers in order, and which part of their output transformers records as their logits."""
    named = [getattr(module, "_can_record_outputs", None) or {} for module in model.modules()]
    recorders: list[Any] = [found["router_logits"] for found in named if "router_logits" in found]
    places = {r.target_class: r.index for r in recorders if isinstance(r, OutputRecorder)}
    return [(module, places[type(module)]) for module in model.modules() if type(module) in places]


@torch.no_grad()
def _probe(router: Any) -> tuple[torch.Tensor, ...]:
    """A router's output for a few vectors. Raises UserError where it has no expert ids."""
    generator = torch.Generator().manual_seed(0)
    weight = next(router.parameters())
    with torch.autocast(weight.device.type, enabled=False):
        output = router(torch.randn(64, weight.shape[-1], generator=generator).to(weight))
    if not isinstance(output, tuple) or all(value.is_floating_point() for value in output):
        raise UserError(f"routing: {type(router).__name__} does not return the experts it chooses; use routing=none")
    return output


# How families weigh the experts they chose.


def _of_all(logits: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    return logits.softmax(-1, dtype=torch.float32).gather(-1, ids)


def _of_all_renormalised(logits: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    weights = _of_all(logits, ids)
    return weights / weights.sum(-1, keepdim=True)


def _among_chosen(logits: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """The same as renormalised, in the order of operations of families that choose first."""
    return logits.gather(-1, ids).softmax(-1)


RULES: Sequence[Rule] = (_of_all, _of_all_renormalised, _among_chosen)


@contextmanager
def watching(routing: Routing | None) -> Iterator[Routing | None]:
    """Hooks in place where there is something to watch."""
    with nullcontext() if routing is None else routing.watching():
        yield routing
