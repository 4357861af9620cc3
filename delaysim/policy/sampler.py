"""Whoever draws responses: the learner's own weights, a copy of them computed otherwise, or an engine beside them."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from transformers import PreTrainedModel

from delaysim.policy.experts import set_experts
from delaysim.policy.noise import GumbelNoise
from delaysim.policy.rollout import Ids, Response
from delaysim.policy.sample import Decoding, sample


@dataclass(frozen=True)
class Draw:
    """The random streams of a batch of responses: equal draws give equal noise, in whatever batch they stand."""

    seed: int
    stream: str
    keys: Sequence[tuple[int, ...]]
    """One per response, in order."""


Answer = Callable[[], list[Response]]
"""Waits for the responses asked for."""


class Sampler(Protocol):
    """Draws responses under the weights that were published last; those it is made with count as published."""

    elsewhere: bool
    """Whether it draws in another process, while this one does something else."""
    gap: float | None
    """Largest difference from the learner's log-probabilities found at the last publish [nats]; None = not checked."""

    def sample(self, prompts: Sequence[Ids], repeat: int, decoding: Decoding, draw: Draw | None) -> list[Response]:
        """`repeat` responses to each prompt, in order; without a `draw`, greedy. Raises SamplerFailed."""
        ...

    def start(self, prompts: Sequence[Ids], repeat: int, decoding: Decoding, draw: Draw | None) -> Answer:
        """Ask for the same; answers are called in the order they were asked for, before the next publish or after."""
        ...

    def rest(self) -> None:
        """Give memory to the learner, which is about to train; the next call is a publish."""
        ...

    def publish(self, version: int) -> None:
        """Take over the learner's weights as they are. Raises SamplerFailed."""
        ...

    def lap(self) -> float | None:
        """Seconds spent drawing since this was last asked, of a sampler elsewhere; None of one in this process."""
        ...

    def close(self) -> None:
        """Give memory and processes back."""
        ...


class HfSampler:
    """A transformers model: the learner's own, or a copy that lags behind it until the next publish.

    The copy is in `dtype` and computes experts by `experts`, one of EXPERTS_IMPLEMENTATIONS; None = as the learner.
    """

    elsewhere = False
    gap: float | None = None

    def __init__(
        self, learner: PreTrainedModel, vocabulary: int, dtype: torch.dtype | None = None, experts: str | None = None
    ) -> None:
        self._learner, self._vocabulary = learner, vocabulary
        self._model = learner if dtype is None and experts is None else _copy(learner, dtype, experts)

    def sample(self, prompts: Sequence[Ids], repeat: int, decoding: Decoding, draw: Draw | None) -> list[Response]:
        noise = None if draw is None else GumbelNoise(draw.seed, draw.stream, draw.keys, self._vocabulary)
        return sample(self._model, prompts, repeat, decoding, noise)

    def start(self, prompts: Sequence[Ids], repeat: int, decoding: Decoding, draw: Draw | None) -> Answer:
        responses = self.sample(prompts, repeat, decoding, draw)
        return lambda: responses

    def rest(self) -> None:
        pass

    @torch.no_grad()
    def publish(self, version: int) -> None:
        if self._model is not self._learner:
            for mine, theirs in zip(self._model.parameters(), self._learner.parameters(), strict=True):
                mine.copy_(theirs)

    def lap(self) -> float | None:
        return None

    def close(self) -> None:
        pass


def _copy(model: PreTrainedModel, dtype: torch.dtype | None, experts: str | None) -> PreTrainedModel:
    own: Any = copy.deepcopy(model)  # requires_grad as in the learner: torch picks its kernels by it
    if experts is not None:
        set_experts(own, experts)
    return own if dtype is None else own.to(dtype)  # type: ignore[no-any-return]
