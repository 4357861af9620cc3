"""Who draws a run's responses: in this process or another, with the learner's weights or older ones of its own."""

from dataclasses import replace
from functools import partial

from delaysim.policy.lagging import Lagging, Ring
from delaysim.policy.model import Policy, with_sampler
from delaysim.policy.remote import RemoteSampler, Seat
from delaysim.policy.sample import Decoding
from delaysim.settings.behaviour import recomputes
from delaysim.settings.carrier import carrier
from delaysim.settings.config import MEASURED, Config
from delaysim.settings.laws import lags
from delaysim.train.scoring import rescored


def with_samplers(cfg: Config, policy: Policy) -> Policy:
    """The policy with the samplers of a run. Raises UserError where a package is missing, SamplerFailed.

    Where the sampler lags behind, evaluations draw in this process, with the learner's weights.
    """
    if not lags(cfg):
        return _with_sampler(cfg, policy)
    routers = Ring(policy.model, cfg.routing.lag) if cfg.routing.lag else None
    lagging = Lagging(policy.model, lambda own: _with_sampler(cfg, Policy(own, policy.codec)), routers)
    return replace(with_sampler(policy, cfg.sampler), lagging=lagging)


def decoding_of(cfg: Config, policy: Policy) -> Decoding:
    """How a run chooses tokens to train on."""
    conf, routes = cfg.sampler, cfg.routing.watched
    return Decoding(conf.max_new_tokens, conf.temperature, policy.codec.stop_ids, cfg.learner.autocasts, routes)


def _with_sampler(cfg: Config, policy: Policy) -> Policy:
    if len(cfg.devices) == 1:
        return with_sampler(policy, cfg.sampler, routes=cfg.routing.watched)
    recompute = partial(rescored, cfg.learner, cfg.sampler.temperature, cfg.routing) if recomputes(cfg) else None
    waits = cfg.suite_name != MEASURED
    seat = Seat(
        policy.codec, cfg.sampler, cfg.devices[1], cfg.threads, recompute, waits, carrier(cfg), cfg.routing.watched
    )
    return replace(policy, own=RemoteSampler(policy.model, seat))
