"""The rules between settings, in one place; each error says what to type instead. No torch."""

from dataclasses import fields, is_dataclass
from math import isfinite
from operator import attrgetter
from typing import Any

from delaysim import estimators, rules
from delaysim.errors import UserError
from delaysim.estimators.advantage import ADVANTAGES, NEEDS_GROUP
from delaysim.estimators.base import AGGREGATIONS
from delaysim.estimators.interface import dial
from delaysim.estimators.penalty import PENALTIES
from delaysim.settings.config import AUTO, Config, LognormalConf, TinyModelConf
from delaysim.settings.tasks import Gsm8kConf, SumsConf
from delaysim.tasks.prompts import check_template

LEAST = {
    "learner.warmup": 0,
    "learner.weight_decay": 0,
    "learner.kl": 0,
    "learner.updates_per_batch": 1,
    "learner.bucket": 1,
    "learner.pack": 0,
    "sampler.max_new_tokens": 1,
    "sampler.chunk": 1,
    "evaluation.every": 1,
    "evaluation.problems": 1,
    "evaluation.samples": 0,
    "evaluation.collapse_looks": 1,
    "evaluation.collapse_se": 0,
    "checkpoint.every": 1,
}
"""Smallest value of each number that training reads; null stays null."""


def check(cfg: Config) -> None:
    """Raise UserError at the first setting that cannot be meant."""
    _suite(cfg)
    _choices(cfg)
    _finite("", cfg)
    _numbers(cfg)
    _clock(cfg)
    if cfg.mode != "trace":
        _training(cfg)


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
    if cfg.suite_name == "no_delay" and cfg.clock.eta != 0:
        raise UserError(f"clock.eta={cfg.clock.eta}: the suite no_delay is eta=0; use +suite=simulated_async")


def _choices(cfg: Config) -> None:
    _one_of("mode", cfg.mode, ("train", "trace", "plan"))
    _one_of("resume", cfg.resume, ("auto", "must", "never"))
    _one_of("display", cfg.display, ("auto", "live", "plain", "quiet"))
    _one_of("recipe", cfg.recipe, ("shared", "published"))
    _one_of("record.ratios", cfg.record.ratios, ("all", "sample", "none"))
    _one_of("learner.kl_penalty", cfg.learner.kl_penalty, PENALTIES)
    _one_of("learner.advantage", cfg.learner.advantage, ADVANTAGES)
    _one_of("learner.aggregation", cfg.learner.aggregation, AGGREGATIONS)
    _one_of("sampler.kind", cfg.sampler.kind, ("hf",))
    if not isinstance(cfg.model, TinyModelConf):
        _one_of("model.dtype", cfg.model.dtype, ("float32", "bfloat16"))
        check_template(cfg.model.template)


def _one_of(key: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UserError(f"{key}={value}: choose one of {', '.join(known)}")


def _finite(prefix: str, node: Any) -> None:
    for field in fields(node):
        value, key = getattr(node, field.name), f"{prefix}{field.name}"
        if is_dataclass(value):
            _finite(f"{key}.", value)
        elif isinstance(value, float) and not isfinite(value):
            raise UserError(f"{key}={value}: give a finite number")


def _numbers(cfg: Config) -> None:
    _at_least("B", cfg.B, 1)
    _at_least("G", cfg.G, 1)
    _at_least("updates", cfg.updates, 1)
    _at_least("seed", cfg.seed, 0)
    _at_least("threads", cfg.threads, 1)
    _at_least("model.seed", cfg.model.seed, 0)
    if cfg.D is not None:
        _at_least("D", cfg.D, 0)
    if isinstance(cfg.lengths, LognormalConf):
        _above("lengths.mean", cfg.lengths.mean, 0)
        _at_least("lengths.sigma", cfg.lengths.sigma, 0)
        _at_least("lengths.cap", cfg.lengths.cap, 1)
        _between("lengths.prompt_share", cfg.lengths.prompt_share, 0, 1)


def _clock(cfg: Config) -> None:
    clock = cfg.clock
    _above("C_update", clock.C_update, 0)
    _at_least("C_gen", clock.C_gen, 0)
    _at_least("lam", clock.lam, 0)
    _at_least("clock.t_min", clock.t_min, 0)
    _at_least("clock.pilot", clock.pilot, 2)
    if clock.lam > 0 and clock.C_gen == 0:
        raise UserError(
            "C_gen=0: with lam > 0 a group's duration is a multiple of C_gen; give C_gen > 0, e.g. C_gen=85"
        )
    if clock.lam > 0 and clock.t_min == 0:
        raise UserError("clock.t_min=0: a group must take some time; give clock.t_min > 0, e.g. 0.05")
    if clock.workers is not None:
        _at_least("clock.workers", clock.workers, 1)
    _auto_or("clock.eta", clock.eta, whole=True)
    _auto_or("clock.L_ref", clock.L_ref, whole=False)


def _auto_or(key: str, value: float | str, whole: bool) -> None:
    if value == AUTO:
        return
    if isinstance(value, str) or (whole and value != int(value)):
        raise UserError(f"{key}={value}: give auto or a{' whole' if whole else ''} number")
    _at_least(key, value, 0) if whole else _above(key, value, 0)


def _training(cfg: Config) -> None:
    if cfg.G == 1 and cfg.learner.advantage in NEEDS_GROUP:
        raise UserError(
            f"G=1: learner.advantage={cfg.learner.advantage} needs a group of 2 or more; "
            "use G=8, or learner.advantage=reward"
        )
    _method("estimator", cfg.estimator, estimators.discover())
    _method("rule", cfg.rule, rules.discover())
    _rule(cfg)
    _threshold(cfg)
    if cfg.lr is None:
        raise UserError("lr=null: give a learning rate, e.g. lr=3e-4")
    if cfg.sampler.temperature <= 0:
        raise UserError(
            f"sampler.temperature={cfg.sampler.temperature:g}: training samples its responses; "
            "give a temperature > 0, e.g. 1"
        )
    _above("lr", cfg.learner.lr, 0)
    _above("learner.clip", cfg.learner.clip, 0)
    for key, low in LEAST.items():
        value = attrgetter(key)(cfg)
        if value is not None:
            _at_least(key, value, low)
    for key in ("learner.beta1", "learner.beta2"):
        _between(key, attrgetter(key)(cfg), 0, 1, open_above=True)
    _task(cfg.task)
    if cfg.task.kind == "chain" and not 2 <= cfg.task.min_terms <= cfg.task.max_terms <= 12:
        raise UserError(
            f"task.min_terms={cfg.task.min_terms} task.max_terms={cfg.task.max_terms}: "
            "give 2 <= min_terms <= max_terms <= 12"
        )


def _task(task: Any) -> None:
    if isinstance(task, SumsConf):
        _between("task.largest", task.largest, 1, 99)
        _between("task.min_terms", task.min_terms, 2, 9)
        _between("task.max_terms", task.max_terms, task.min_terms, 9)
    if isinstance(task, Gsm8kConf):
        _between("task.format_reward", task.format_reward, 0, 1)
        _at_least("task.workers", task.workers, 1)


def _method(group: str, params: Any, modules: dict[str, Any]) -> None:
    """An estimator's or a rule's own settings: numbers at least 0, texts among its choices."""
    choices = getattr(modules.get(params.name), "CHOICES", {})
    for field in fields(params):
        key, value = f"{group}.{field.name}", getattr(params, field.name)
        if field.name in choices:
            _one_of(key, value, choices[field.name])
        elif field.name == "cap":
            _above(key, value, 0)
        elif isinstance(value, float):
            _at_least("eps" if field.name == "eps" else key, value, 0)


def _rule(cfg: Config) -> None:
    if cfg.rule.name == "vcpo":
        _above("rule.base", cfg.rule.base, 0)
    if cfg.rule.name == "gac":
        _between("rule.high", cfg.rule.high, 0, 1)
        _between("rule.low", cfg.rule.low, 0, min(cfg.rule.high, 0.999))


def _threshold(cfg: Config) -> None:
    if cfg.estimator.name == "custom":
        if cfg.recipe == "published":
            raise UserError(
                "recipe=published: a user's file has none; give learner.advantage= and learner.aggregation="
            )
        return
    if cfg.eps is not None and not dial(estimators.discover()[cfg.estimator.name], cfg.estimator):
        raise UserError(f"eps={cfg.eps:g}: the estimator {cfg.estimator.name} has no threshold; drop eps")


def _at_least(key: str, value: float, low: float) -> None:
    if value < low:
        raise UserError(f"{key}={value:g}: give {low:g} or more")


def _above(key: str, value: float, low: float) -> None:
    if value <= low:
        raise UserError(f"{key}={value:g}: give a number above {low:g}")


def _between(key: str, value: float, low: float, high: float, open_above: bool = False) -> None:
    if not low <= value <= high or (open_above and value == high):
        raise UserError(f"{key}={value:g}: give a number from {low:g} to {'below ' if open_above else ''}{high:g}")
