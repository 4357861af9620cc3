"""The rules between settings that a training run reads, a trace does not. No torch."""

from dataclasses import fields
from operator import attrgetter
from typing import Any

from delaysim import estimators, rules
from delaysim.errors import UserError
from delaysim.estimators.advantage import NEEDS_GROUP
from delaysim.estimators.interface import dial
from delaysim.settings.bounds import above, at_least, between, one_of
from delaysim.settings.config import Config
from delaysim.settings.laws import syncs_late
from delaysim.settings.models import NO_EXPERTS, PretrainedModelConf, TinyModelConf, TinyMoeConf
from delaysim.settings.routing import NONE, R3, names_experts
from delaysim.settings.samplers import VllmSamplerConf
from delaysim.settings.tasks import Gsm8kConf, SumsConf

LEAST = {
    "learner.warmup": 0,
    "learner.weight_decay": 0,
    "learner.kl": 0,
    "learner.updates_per_batch": 1,
    "learner.bucket": 1,
    "learner.pack": 0,
    "learner.tokens": 1,
    "learner.logits": 1,
    "sampler.max_new_tokens": 1,
    "sampler.chunk": 1,
    "evaluation.every": 1,
    "evaluation.problems": 1,
    "evaluation.samples": 0,
    "evaluation.batch": 1,
    "evaluation.collapse_looks": 1,
    "evaluation.collapse_se": 0,
    "checkpoint.every": 1,
}
"""Smallest value of each number that training reads; null stays null."""


def check_training(cfg: Config) -> None:
    """Raise UserError at the first setting of a training run that cannot be meant."""
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
    _routing(cfg)
    if isinstance(cfg.sampler, VllmSamplerConf):
        check_vllm(cfg.sampler)
        if syncs_late(cfg):
            raise UserError(
                "sampler=vllm: draws with the learner's weights of now, but clock.sync_every or a sync in the "
                "background makes it lag behind; use sampler=hf, or clock.sync_every=1 clock.sync_mode=blocking"
            )
    above("lr", cfg.learner.lr, 0)
    above("learner.clip", cfg.learner.clip, 0)
    for key, low in LEAST.items():
        value = attrgetter(key)(cfg)
        if value is not None:
            at_least(key, value, low)
    between("learner.final", cfg.learner.final, 0, 1)
    _precision(cfg)
    _experts(cfg)
    for key in ("learner.beta1", "learner.beta2"):
        between(key, attrgetter(key)(cfg), 0, 1, open_above=True)
    _task(cfg.task)
    if cfg.plan.memory_gb is not None:
        above("plan.memory_gb", cfg.plan.memory_gb, 0)
    if cfg.task.kind == "chain" and not 2 <= cfg.task.min_terms <= cfg.task.max_terms <= 12:
        raise UserError(
            f"task.min_terms={cfg.task.min_terms} task.max_terms={cfg.task.max_terms}: "
            "give 2 <= min_terms <= max_terms <= 12"
        )


def check_vllm(conf: VllmSamplerConf) -> None:
    """Raise UserError at a setting of an engine that cannot be meant, or that changes what log-probabilities mean."""
    if conf.top_p != 1 or conf.top_k != 0:
        raise UserError(
            f"sampler.top_p={conf.top_p:g} sampler.top_k={conf.top_k}: the sampler's log-probabilities would be those "
            "of a cut distribution, the learner's of the whole; use sampler.top_p=1 sampler.top_k=0"
        )
    if conf.experts_implementation is not None:
        raise UserError(
            f"sampler.experts_implementation={conf.experts_implementation}: vLLM has kernels of its own; "
            "use sampler=hf, or drop it"
        )
    at_least("sampler.temperature", conf.temperature, 0.01)  # vLLM raises lower ones to this
    between("sampler.memory_share", conf.memory_share, 0.01, 0.99)
    between("sampler.sleep", conf.sleep, 0, 2)
    above("sampler.cache_gib", conf.cache_gib, 0)
    above("sampler.timeout", conf.timeout, 0)
    at_least("sampler.sequences", conf.sequences, 1)
    at_least("sampler.context", conf.context, conf.max_new_tokens + 1)
    if conf.floor is not None:
        above("sampler.floor", conf.floor, 0)


def _routing(cfg: Config) -> None:
    at_least("routing.lag", cfg.routing.lag, 0)
    dense = isinstance(cfg.model, TinyModelConf) and not isinstance(cfg.model, TinyMoeConf)
    asked = {
        f"routing={cfg.routing.replay}": cfg.routing.replay != NONE,
        f"routing.lag={cfg.routing.lag}": cfg.routing.lag > 0,
        "routing.record=true": cfg.routing.record,
    }
    if dense and any(asked.values()):
        first = next(name for name, given in asked.items() if given)
        raise UserError(f"{first}: model=tiny has no experts; use model=tiny_moe, or drop it")
    if cfg.routing.lag:
        _routers_lag(cfg)
    engine = isinstance(cfg.sampler, VllmSamplerConf) and cfg.routing.replay == R3
    if engine and not names_experts(cfg.devices[-1], cfg.sampler):
        without = "on a CPU" if cfg.devices[-1] == "cpu" else "with sampler.prefix_cache=false"
        raise UserError(
            f"routing=r3: vLLM {without} does not say which experts it used; use routing=r2, or "
            "sampler=hf sampler.dtype=bfloat16, which computes apart too"
        )


def _routers_lag(cfg: Config) -> None:
    """The sampler's routers lag behind weights that are the learner's of now."""
    if isinstance(cfg.sampler, VllmSamplerConf):
        raise UserError(
            f"routing.lag={cfg.routing.lag}: sampler=vllm draws with the learner's weights of now; "
            "use sampler=hf, or drop routing.lag"
        )
    if syncs_late(cfg):
        raise UserError(
            f"routing.lag={cfg.routing.lag}: with clock.sync_every or a sync in the background all of the sampler lags "
            "behind; use clock.sync_every=1 clock.sync_mode=blocking, or drop routing.lag"
        )


def _precision(cfg: Config) -> None:
    if isinstance(cfg.model, TinyModelConf):
        return
    if cfg.model.lora.rank is not None:
        at_least("model.lora.rank", cfg.model.lora.rank, 1)
        above("model.lora.alpha", cfg.model.lora.alpha, 0)
        if not cfg.model.lora.targets:
            raise UserError("model.lora.targets=[]: name layers, e.g. [q_proj,v_proj], or [all-linear]")
    elif cfg.learner.autocasts and cfg.model.dtype != "float32":
        raise UserError(
            f"learner.precision=bf16_autocast keeps float32 weights, but model.dtype={cfg.model.dtype}: "
            "give model.dtype=float32, or adapters with model.lora.rank=32"
        )


def _experts(cfg: Config) -> None:
    """Settings of experts need some; a model of unknown shape says so when loaded (delaysim/policy/experts.py)."""
    if isinstance(cfg.model, TinyMoeConf):
        between("model.experts_per_token", cfg.model.experts_per_token, 1, cfg.model.experts)
        return
    if isinstance(cfg.model, PretrainedModelConf) and (cfg.model.shape is None or cfg.model.shape.experts):
        return
    for key in ("model", "sampler"):
        if (kernel := getattr(getattr(cfg, key), "experts_implementation", None)) is not None:
            raise UserError(f"{key}.experts_implementation={kernel}: {NO_EXPERTS}")


def _task(task: Any) -> None:
    if isinstance(task, SumsConf):
        between("task.largest", task.largest, 1, 99)
        between("task.min_terms", task.min_terms, 2, 9)
        between("task.max_terms", task.max_terms, task.min_terms, 9)
    if isinstance(task, Gsm8kConf):
        between("task.format_reward", task.format_reward, 0, 1)
        at_least("task.workers", task.workers, 1)


def _method(group: str, params: Any, modules: dict[str, Any]) -> None:
    """An estimator's or a rule's own settings: numbers at least 0, texts among its choices."""
    choices = getattr(modules.get(params.name), "CHOICES", {})
    for field in fields(params):
        key, value = f"{group}.{field.name}", getattr(params, field.name)
        if field.name in choices:
            one_of(key, value, choices[field.name])
        elif field.name == "cap":
            above(key, value, 0)
        elif isinstance(value, float):
            at_least("eps" if field.name == "eps" else key, value, 0)


def _rule(cfg: Config) -> None:
    if cfg.rule.name == "vcpo":
        above("rule.base", cfg.rule.base, 0)
    if cfg.rule.name == "gac":
        between("rule.high", cfg.rule.high, 0, 1)
        between("rule.low", cfg.rule.low, 0, min(cfg.rule.high, 0.999))


def _threshold(cfg: Config) -> None:
    if cfg.estimator.name == "custom":
        if cfg.recipe == "published":
            raise UserError(
                "recipe=published: a user's file has none; give learner.advantage= and learner.aggregation="
            )
        return
    if cfg.eps is not None and not dial(estimators.discover()[cfg.estimator.name], cfg.estimator):
        raise UserError(f"eps={cfg.eps:g}: the estimator {cfg.estimator.name} has no threshold; drop eps")
