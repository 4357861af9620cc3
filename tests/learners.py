"""Learners on the tiny base, stale groups, and references in plain transformers: one response at a time, no packing."""

import copy

import numpy as np
import torch

from delaysim import estimators, rules
from delaysim.policy.codec import CharacterCodec
from delaysim.policy.noise import GumbelNoise
from delaysim.policy.rollout import Group, Response
from delaysim.policy.sample import Decoding, sample
from delaysim.policy.tiny import load_tiny
from delaysim.settings.config import LearnerConf
from delaysim.settings.models import TinyModelConf
from delaysim.tasks.chain import Chain
from delaysim.train.gradient import NO_RULE, Rule
from delaysim.train.learner import Learner

CODEC = CharacterCodec()
TEMPERATURE, LONGEST = 0.8, 12
REWARDS = ((1.0, 0.0, 0.0, 0.25), (0.7, 0.7, 0.7, 0.7), (0.0, 1.0, 1.0, 0.0))
"""Of the three groups: mixed, all equal, mixed."""


def tiny_base():
    """The tiny base after 60 fine-tuning steps."""
    torch.set_num_threads(1)
    return load_tiny(TinyModelConf(sft_steps=60), Chain(), lambda *_: None).eval()


def stale_groups(model, seed=0, spread=0.6):
    """Three groups of four sampled from the model, their recorded log-probabilities then moved by up to `spread`."""
    prompts = [CODEC.encode_prompt(text) for text in ("1+2=", "4+8+3+9=", "7+7+7=")]
    noise = GumbelNoise(5 + seed, "test", [(b, 0, i) for b in range(3) for i in range(4)], CODEC.vocabulary)
    responses = sample(model, prompts, 4, Decoding(LONGEST, TEMPERATURE, CODEC.stop_ids), noise)
    rng = np.random.default_rng(seed)
    moved = [
        Response(r.tokens, r.logp + rng.uniform(-spread, spread, len(r.logp)).astype(np.float32), r.finished)
        for r in responses
    ]
    return [Group(10 + b, 2 * b, prompts[b], tuple(moved[4 * b : 4 * b + 4]), REWARDS[b]) for b in range(3)]


def make(model, name="is", params=None, rule=NO_RULE, longest=LONGEST, **settings):
    """A learner that neither warms up nor clips unless told to; `name` may be an estimator of one's own."""
    conf = LearnerConf(**{"lr": 1e-2, "warmup": 0, "clip": 1e9, **settings})
    decoding = Decoding(longest, TEMPERATURE, frozenset())
    estimator = estimators.make(name, **(params or {})) if isinstance(name, str) else name
    return Learner(model, estimator, conf, decoding, rule)


def rule(name, **settings):
    """A rule with its settings."""
    module = rules.discover()[name]
    return Rule(module, module.Params(**settings))


def log_probabilities(model, group, response):
    """Of each token of one response; carries gradients."""
    ids = torch.from_numpy(np.concatenate([group.prompt, response.tokens]).astype(np.int64))[None]
    chances = (model(input_ids=ids).logits[0, len(group.prompt) - 1 : -1] / TEMPERATURE).log_softmax(-1)
    return chances.gather(1, ids[0, len(group.prompt) :, None])[:, 0]


def each(groups):
    """Every response with its group and its two indices."""
    return [(b, i, group, r) for b, group in enumerate(groups) for i, r in enumerate(group.responses)]


def log_ratio(model, group, response):
    """[T] current minus recorded log-probability, detached."""
    return (log_probabilities(model, group, response).detach() - torch.from_numpy(response.logp)).double()


def autograd(loss, model):
    """The gradient of a loss as one vector."""
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))])


def gradient_of(model):
    """The gradient a learner left on its model."""
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def weights_of(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def moments(learner):
    """A copy of what the optimiser remembers."""
    return {name: value.clone() for name, value in learner.optimiser_state().items()}


def close(found, wanted, share=1e-5):
    """Whether two gradients agree to a share of their length in every entry."""
    assert float(wanted.norm()) > 1e-3
    return float((found - wanted).abs().max()) < share * float(wanted.norm())


def moved(model, size=0.02, seed=0):
    """A copy of the model with noise on every weight."""
    other, rng = copy.deepcopy(model), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(size * torch.randn(parameter.shape, generator=rng))
    return other
