"""A sampler with older weights than the learner: synced seldom, in the background, or its routers some updates late."""

import copy
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import torch
from transformers import PreTrainedModel

from delaysim.errors import UserError
from delaysim.policy.routing import routers

if TYPE_CHECKING:
    from delaysim.policy.model import Policy

Weights = Mapping[str, torch.Tensor]
SAMPLERS, ASIDE, ROUTERS = "sampler", "aside", "routers"
"""Files that a checkpoint has of it."""


class Ring:
    """Weights of the learner's routers at its last versions."""

    def __init__(self, learner: PreTrainedModel, lag: int) -> None:
        """`lag` versions back. Raises UserError where training moves no router."""
        own = {id(parameter) for router, _ in routers(learner) for parameter in router.parameters()}
        moved = {name for name, parameter in learner.named_parameters() if id(parameter) in own}
        self._routers = {name: weight for name, weight in _moved(learner).items() if name in moved}
        if not self._routers:
            raise UserError(f"routing.lag={lag}: training moves no router of this model; drop routing.lag")
        self._lag, self._versions = lag, dict[int, dict[str, torch.Tensor]]()

    def turn(self, version: int) -> Weights:
        """Keep the weights of now as those of this version; `lag` versions ago they were these, at first the base's."""
        self._versions[version] = {name: weight.clone() for name, weight in self._routers.items()}
        self._versions = {v: weights for v, weights in self._versions.items() if v >= version - self._lag}
        return self._versions[min(self._versions)]

    def state(self) -> Weights:
        """By version and name."""
        return {f"{v}/{name}": weight for v, weights in self._versions.items() for name, weight in weights.items()}

    def load(self, state: Weights) -> None:
        """Go on from what `state` gave."""
        self._versions = {}
        for key, weight in state.items():
            version, name = key.split("/", 1)
            self._versions.setdefault(int(version), {})[name] = weight.to(self._routers[name].device)


class Lagging:
    """The sampler's own weights, and those on their way to it: what training moves, by name."""

    def __init__(
        self, learner: PreTrainedModel, make: Callable[[PreTrainedModel], "Policy"], ring: Ring | None = None
    ) -> None:
        """`make` puts a sampler around the copy; with `ring` only its routers lag, and it follows every publish."""
        self._learner, self._ring = learner, ring
        self.policy = make(copy.deepcopy(learner))  # requires_grad as in the learner: torch picks its kernels by it
        """Draws what is trained on."""
        self._aside: Weights | None = None

    @property
    def follows(self) -> bool:
        """Whether weights arrive with every publish, and not by the clock."""
        return self._ring is not None

    @property
    def files(self) -> tuple[str, ...]:
        """What a checkpoint has of it."""
        return (SAMPLERS, ASIDE) if self._ring is None else (ROUTERS,)

    def set_aside(self) -> None:
        """Keep the learner's weights of now for the next arrival."""
        self._aside = {name: parameter.clone() for name, parameter in _moved(self._learner).items()}

    def arrive(self, version: int) -> None:
        """The sampler takes over what was set aside, or the learner's weights of now where nothing was."""
        weights = _moved(self._learner) if self._aside is None else self._aside
        self._take(weights if self._ring is None else {**weights, **self._ring.turn(version)})
        self._aside = None
        self.policy.sampler.publish(version)

    def state(self) -> dict[str, Weights]:
        """What a checkpoint needs, by file: the sampler's weights where they are not the learner's, and those aside."""
        if self._ring is not None:
            return {ROUTERS: self._ring.state()}
        own, learners = _moved(self.policy.model), _moved(self._learner)
        same = all(torch.equal(own[name], learners[name]) for name in own)
        return {SAMPLERS: {} if same else own, ASIDE: self._aside or {}}

    def load(self, version: int, state: Mapping[str, Weights]) -> None:
        """Go on from what `state` gave, the learner's weights being in place."""
        if self._ring is not None:
            self._ring.load(state[ROUTERS])
            return self.arrive(version)
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
