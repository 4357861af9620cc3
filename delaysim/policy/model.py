"""A model with its codec and its sampler, from the configuration."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from transformers import PreTrainedModel

from delaysim.errors import UserError
from delaysim.policy.codec import CharacterCodec, Codec
from delaysim.policy.lagging import Lagging
from delaysim.policy.sampler import HfSampler, Sampler
from delaysim.policy.tiny import Progress, load_tiny
from delaysim.settings.models import PretrainedModelConf, TinyModelConf
from delaysim.tasks.chain import Chain


@dataclass(frozen=True)
class Policy:
    """What samples and what is trained: the same weights, unless the sampler has its own."""

    model: PreTrainedModel
    codec: Codec
    own: Sampler | None = None
    """A sampler with weights of its own."""
    lagging: Lagging | None = None
    """Who draws what is trained on, where its weights can be older than the learner's."""

    @property
    def generating(self) -> "Policy":
        """The policy that draws what is trained on."""
        return self if self.lagging is None else self.lagging.policy

    def publish(self, version: int) -> None:
        """Samplers take the learner's weights over, but for one that the clock's syncs bring them to."""
        self.sampler.publish(version)
        if self.lagging is not None and self.lagging.follows:
            self.lagging.arrive(version)

    def close(self) -> None:
        """Give the samplers' memory and processes back."""
        for policy in {id(policy): policy for policy in (self, self.generating)}.values():
            policy.sampler.close()

    @cached_property
    def sampler(self) -> Sampler:
        """Who draws this policy's responses."""
        return self.own or HfSampler(self.model, self.codec.vocabulary)


def load_policy(conf: TinyModelConf | PretrainedModelConf, task: Any, progress: Progress) -> Policy:
    """The base policy of a run, in evaluation mode: no dropout, so that sampler and learner agree."""
    if isinstance(conf, TinyModelConf):
        if not isinstance(task, Chain):
            raise UserError("model=tiny knows task=chain only; use model=smollm2 or model=pretrained for other tasks")
        return Policy(load_tiny(conf, task, progress).eval(), CharacterCodec())
    from delaysim.policy.pretrained import load_pretrained

    return load_pretrained(conf)


def with_sampler(policy: Policy, conf: Any, carrier: str | None = None, routes: bool = False) -> Policy:
    """The policy with the sampler of `conf`. Raises UserError where a package or experts lack, SamplerFailed.

    An engine's weights are the policy's, or brought from another process (delaysim/settings/carrier.py). It has to know
    from the start whether anybody asks for the experts it uses (`routes`).
    """
    if conf.kind == "vllm":
        from delaysim.policy.vllm_sampler import VllmSampler

        return replace(policy, own=VllmSampler(policy.model, policy.codec, conf, carrier, routes))
    if conf.dtype is None and conf.experts_implementation is None:
        return policy
    dtype = None if conf.dtype is None else getattr(torch, conf.dtype)
    return replace(policy, own=HfSampler(policy.model, policy.codec.vocabulary, dtype, conf.experts_implementation))
