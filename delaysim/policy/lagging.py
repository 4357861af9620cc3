"""A sampler whose weights can be older than the learner's: they are synced seldom, or in the background."""

import copy
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import torch
from transformers import PreTrainedModel

if TYPE_CHECKING:
    from delaysim.policy.model import Policy

Weights = Mapping[str, torch.Tensor]
FILES = SAMPLERS, ASIDE = ("sampler", "aside")
"""What a checkpoint has of it."""


class Lagging:
    """The sampler's own weights, and those on their way to it: what training moves, by name."""

    def __init__(self, learner: PreTrainedModel, make: Callable[[PreTrainedModel], "Policy"]) -> None:
        """`make` puts a sampler around the copy."""
        self._learner = learner
        self.policy = make(copy.deepcopy(learner))  # requires_grad as in the learner: torch picks its kernels by it
        """Draws what is trained on."""
        self._aside: Weights | None = None

    def set_aside(self) -> None:
        """Keep the learner's weights of now for the next arrival."""
        self._aside = {name: parameter.clone() for name, parameter in _moved(self._learner).items()}

    def arrive(self, version: int) -> None:
        """The sampler takes over what was set aside, or the learner's weights of now where nothing was."""
        self._take(_moved(self._learner) if self._aside is None else self._aside)
        self._aside = None
        self.policy.sampler.publish(version)

    def state(self) -> dict[str, Weights]:
        """What a checkpoint needs, by file: the sampler's weights where they are not the learner's, and those aside."""
        own, learners = _moved(self.policy.model), _moved(self._learner)
        same = all(torch.equal(own[name], learners[name]) for name in own)
        return {SAMPLERS: {} if same else own, ASIDE: self._aside or {}}

    def load(self, version: int, state: Mapping[str, Weights]) -> None:
        """Go on from what `state` gave, the learner's weights being in place."""
        self._take(state[SAMPLERS] or _moved(self._learner))
        device = self._learner.device
        self._aside = {name: tensor.to(device) for name, tensor in state[ASIDE].items()} or None
        self.policy.sampler.publish(version)

    @torch.no_grad()
    def _take(self, weights: Weights) -> None:
        for name, parameter in _moved(self.policy.model).items():
            parameter.copy_(weights[name])


def _moved(model: PreTrainedModel) -> dict[str, torch.Tensor]:
    return {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}
