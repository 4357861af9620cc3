"""The rules between settings; each error says what to type instead. Those of training: training_checks. No torch."""

import re
from dataclasses import fields, is_dataclass
from math import isfinite
from typing import Any

from delaysim.errors import UserError
from delaysim.estimators.advantage import ADVANTAGES
from delaysim.estimators.base import AGGREGATIONS
from delaysim.estimators.penalty import PENALTIES
from delaysim.settings.behaviour import BEHAVIOURS
from delaysim.settings.bounds import above, at_least, between, one_of
from delaysim.settings.clock_checks import check_clock
from delaysim.settings.config import AUTO, MEASURED, SINKS, Config, LognormalConf
from delaysim.settings.models import EXPERTS_IMPLEMENTATIONS, TinyModelConf
from delaysim.settings.preset import check_preset
from delaysim.settings.replay import check_replay
from delaysim.settings.routing import REPLAYS
from delaysim.settings.training_checks import check_training
from delaysim.tasks.prompts import check_template


def check(cfg: Config) -> None:
    """Raise UserError at the first setting that cannot be meant."""
    check_preset(cfg)
    _suite(cfg)
    _choices(cfg)
    _finite("", cfg)
    _numbers(cfg)
    _devices(cfg)
    check_clock(cfg)
    if cfg.mode != "trace":
        check_training(cfg)


def _suite(cfg: Config) -> None:
    if cfg.suite_name != "fixed_delay" and cfg.D is not None:
        raise UserError(f"D={cfg.D}: the suite {cfg.suite_name} ignores D; use +suite=fixed_delay D={cfg.D}, or drop D")
    if cfg.suite_name == "fixed_delay" and cfg.lam is not None:
        raise UserError(
            f"lam={cfg.lam:g}: the suite fixed_delay ignores lam; "
            f"use +suite=simulated_async lam={cfg.lam:g}, or drop lam"
        )
    if cfg.suite_name == "fixed_delay" and cfg.D is None:
        raise UserError("D=null: the suite fixed_delay needs a delay, e.g. D=128")
    if cfg.suite_name == "fixed_delay" and (cfg.clock.lam != 0 or cfg.clock.eta != cfg.D):
        raise UserError(
            "the suite fixed_delay sets clock.lam=0 and clock.eta=D; use +suite=simulated_async to change them"
        )
    check_replay(cfg)
    if cfg.suite_name == MEASURED:
        _measured(cfg)
    if cfg.suite_name == "no_delay" and cfg.clock.eta != 0:
        raise UserError(f"clock.eta={cfg.clock.eta}: the suite no_delay is eta=0; use +suite=simulated_async")


def _measured(cfg: Config) -> None:
    if cfg.lam is not None or cfg.clock.lam != 0:
        raise UserError("lam: the suite measured couples nothing by rule; use +suite=simulated_async, or drop lam")
    if cfg.clock.eta == AUTO:
        raise UserError("clock.eta=auto: the suite measured needs a look-ahead in updates, e.g. clock.eta=8")
    if cfg.mode != "train":
        raise UserError(f"mode={cfg.mode}: the suite measured really runs; use +suite=simulated_async mode={cfg.mode}")
    if len(cfg.devices) != 2:
        raise UserError(
            f"devices=[{','.join(cfg.devices)}]: the suite measured runs two processes beside each other; "
            "give devices=[cpu,cpu] or devices=[cuda:0,cuda:1]"
        )


def _choices(cfg: Config) -> None:
    one_of("mode", cfg.mode, ("train", "trace", "plan"))
    one_of("resume", cfg.resume, ("auto", "must", "never"))
    one_of("display", cfg.display, ("auto", "live", "plain", "quiet"))
    for sink in cfg.sinks:
        one_of("sinks", sink, SINKS)
    one_of("recipe", cfg.recipe, ("shared", "published"))
    one_of("routing.replay", cfg.routing.replay, REPLAYS)
    one_of("record.ratios", cfg.record.ratios, ("all", "sample", "none"))
    one_of("learner.kl_penalty", cfg.learner.kl_penalty, PENALTIES)
    one_of("learner.advantage", cfg.learner.advantage, ADVANTAGES)
    one_of("learner.aggregation", cfg.learner.aggregation, AGGREGATIONS)
    one_of("behaviour", cfg.behaviour, BEHAVIOURS)
    if cfg.sampler.dtype is not None:
        one_of("sampler.dtype", cfg.sampler.dtype, ("float32", "bfloat16"))
    for key in ("model", "sampler"):
        if (kernel := getattr(getattr(cfg, key), "experts_implementation", None)) is not None:
            one_of(f"{key}.experts_implementation", kernel, EXPERTS_IMPLEMENTATIONS)
    one_of("learner.schedule", cfg.learner.schedule, ("constant", "linear", "cosine"))
    one_of("learner.precision", cfg.learner.precision, ("float32", "bf16_autocast"))
    if not isinstance(cfg.model, TinyModelConf):
        one_of("model.dtype", cfg.model.dtype, ("float32", "bfloat16"))
        check_template(cfg.model.template)


def _finite(prefix: str, node: Any) -> None:
    for field in fields(node):
        value, key = getattr(node, field.name), f"{prefix}{field.name}"
        if is_dataclass(value):
            _finite(f"{key}.", value)
        elif isinstance(value, float) and not isfinite(value):
            raise UserError(f"{key}={value}: give a finite number")


def _numbers(cfg: Config) -> None:
    at_least("B", cfg.B, 1)
    at_least("G", cfg.G, 1)
    at_least("updates", cfg.updates, 1)
    at_least("seed", cfg.seed, 0)
    at_least("threads", cfg.threads, 1)
    at_least("jobs", cfg.jobs, 1)
    at_least("model.seed", cfg.model.seed, 0)
    if cfg.responses is not None and cfg.responses != cfg.B * cfg.G:
        product = f"B*G = {cfg.B}*{cfg.G}"
        raise UserError(f"responses={cfg.responses}: is not {product}; use responses={cfg.B * cfg.G}, or B and G alone")
    if cfg.D is not None:
        at_least("D", cfg.D, 0)
    if isinstance(cfg.lengths, LognormalConf):
        above("lengths.mean", cfg.lengths.mean, 0)
        at_least("lengths.sigma", cfg.lengths.sigma, 0)
        at_least("lengths.cap", cfg.lengths.cap, 1)
        between("lengths.prompt_share", cfg.lengths.prompt_share, 0, 1)
    between("lengths.flat", cfg.lengths.flat, 0, 1)


def _devices(cfg: Config) -> None:
    given = f"devices=[{','.join(cfg.devices)}]"
    if len(cfg.devices) not in (1, 2):
        raise UserError(f"{given}: give one, or two: the learner's and the sampler's, e.g. devices=[cuda:0,cuda:1]")
    for device in cfg.devices:
        if not re.fullmatch(r"cpu|cuda:\d+", device):
            raise UserError(f"{given}: {device} is no device; write cpu, or cuda:0")
