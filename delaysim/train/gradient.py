"""The gradient as one vector: its cosine with the previous one, and what an update rule makes of it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from transformers import PreTrainedModel

from delaysim.estimators.base import GroupBatch
from delaysim.rules import none
from delaysim.rules.gac import cosine

LARGEST = 100_000_000
"""Parameters up to which the previous gradient is kept for its cosine alone."""
REMEMBERED = "previous_gradient"


@dataclass(frozen=True)
class Rule:
    """An update rule with its settings; what its file does not define leaves things as they are."""

    module: ModuleType
    params: Any

    def advantages(self, batch: GroupBatch, kappa: torch.Tensor, norms: Callable[[], torch.Tensor]) -> torch.Tensor:
        """[B, G]; `norms` computes the responses' squared gradient norms, which is expensive."""
        if not self.rebases:
            return batch.advantages
        return self.module.advantages(batch, kappa, norms(), self.params)  # type: ignore[no-any-return]

    def step_scale(self, batch: GroupBatch, kappa: torch.Tensor) -> float:
        """Factor of this step's learning rate."""
        function = getattr(self.module, "step_scale", None)
        return 1.0 if function is None else float(function(batch, kappa, self.params))

    @property
    def rebases(self) -> bool:
        """Whether it replaces the advantages, from the whole mini-batch."""
        return hasattr(self.module, "advantages") and getattr(self.params, "baseline", None) != "off"

    @property
    def directs(self) -> bool:
        """Whether it acts on the gradient itself."""
        return hasattr(self.module, "direction")


NO_RULE = Rule(none, none.Params())


def trained(model: PreTrainedModel) -> Iterator[tuple[str, torch.nn.Parameter]]:
    """The parameters that training moves, by name; of a model with adapters, the adapters'."""
    return ((name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad)


class Gradient:
    """The gradient of one model, from update to update."""

    def __init__(self, model: PreTrainedModel, rule: Rule) -> None:
        self._model, self._rule = model, rule
        size = sum(p.numel() for _, p in trained(model))
        self._kept = rule.directs or size <= LARGEST
        self._previous: torch.Tensor | None = None

    def direct(self) -> tuple[float | None, bool]:
        """Let the rule act on the gradients in place; the cosine with the previous one, and whether to step at all."""
        if not self._kept:
            return None, True
        gradients = [p.grad for p in self._model.parameters() if p.grad is not None]
        flat = torch.cat([g.flatten() for g in gradients])
        along = None if self._previous is None else cosine(flat, self._previous)
        applied: torch.Tensor | None = flat
        if self._rule.directs:
            applied, self._previous = self._rule.module.direction(flat, self._previous, self._rule.params)
        else:
            self._previous = flat
        if applied is not None and applied is not flat:
            for gradient, part in zip(gradients, applied.split([g.numel() for g in gradients]), strict=True):
                gradient.copy_(part.view_as(gradient))
        return along, applied is not None

    def state(self) -> dict[str, torch.Tensor]:
        """What the next update needs, for a checkpoint."""
        return {} if self._previous is None else {REMEMBERED: self._previous}

    def load(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Go on from a checkpoint."""
        if REMEMBERED in tensors:
            self._previous = tensors[REMEMBERED].to(self._model.device)
