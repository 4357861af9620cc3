"""A model with its codec, from the configuration."""

from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedModel

from delaysim.errors import UserError
from delaysim.policy.codec import CharacterCodec, Codec
from delaysim.policy.tiny import Progress, load_tiny
from delaysim.settings.models import PretrainedModelConf, TinyModelConf
from delaysim.tasks.chain import Chain


@dataclass(frozen=True)
class Policy:
    """What samples and what is trained: on one device they are the same weights."""

    model: PreTrainedModel
    codec: Codec


def load_policy(conf: TinyModelConf | PretrainedModelConf, task: Any, progress: Progress) -> Policy:
    """The base policy of a run, in evaluation mode: no dropout, so that sampler and learner agree."""
    if isinstance(conf, TinyModelConf):
        if not isinstance(task, Chain):
            raise UserError("model=tiny knows task=chain only; use model=smollm2 or model=pretrained for other tasks")
        return Policy(load_tiny(conf, task, progress).eval(), CharacterCodec())
    from delaysim.policy.pretrained import load_pretrained

    return load_pretrained(conf)
