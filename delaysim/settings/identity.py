"""What a run is: the settings that were read and decide its rows, their hash, and the name made of them. No torch."""

import re
from dataclasses import asdict, fields
from functools import cache
from pathlib import Path
from typing import Any

from delaysim.clock.pilot import RANKED
from delaysim.data import model_digest
from delaysim.estimators import discover
from delaysim.estimators.interface import dial, dialled
from delaysim.files import digest, file_digest
from delaysim.settings.behaviour import SAMPLER, behaviour, recomputes
from delaysim.settings.config import AUTO, MEASURED, REPLAY, ClockConf, Config
from delaysim.settings.routing import NONE

ONLY_PLANNED = ("seconds_per_update", "shape", "speed")
"""Settings of mode=plan alone."""
ONLY_HOW = ("memory_share", "sleep", "cache_gib", "timeout", "floor")
"""Settings of a sampler that decide where and how long it works, not what it draws."""
OFF = {
    "kl": 0,
    "updates_per_batch": 1,
    "tokens": None,
    "logits": None,
    "gradient_checkpointing": False,
    "precision": "float32",
    "schedule": "constant",
}
"""Settings of the learner that are no part of a run where they are off."""
DEFAULTS = {field.name: field.default for field in fields(ClockConf)} | {"speed": []}
POLICIES = DEFAULTS.keys() - {"C_gen", "C_update", "lam", "eta", "workers", "L_ref", "t_min", "pilot", "engine"}
"""Settings of the clock that are no part of a run where they have their defaults."""
NO_RESULT = ("workers",)
"""Settings of a task that no row depends on."""


def identity(cfg: Config) -> dict[str, Any]:
    """The settings that decide a run's rows, contents in place of paths; equal settings are the same run."""
    shared = {"suite": cfg.suite_name, "clock": _clock(cfg), "B": cfg.B, "G": cfg.G, "N": cfg.updates, "seed": cfg.seed}
    shared |= {"delays": _delays(cfg)} if cfg.suite_name == REPLAY else {}
    if cfg.mode == "trace":
        steps = {} if cfg.learner.updates_per_batch == 1 else {"steps": cfg.learner.updates_per_batch}
        return {**shared, "lengths": _lengths(cfg), "pilot_seed": cfg.model.seed, **steps}
    return {
        **shared,
        "model": _model(cfg),
        "task": _task(cfg),
        "sampler": _sampler(cfg),
        "estimator": _estimator(cfg),
        "learner": _learner(cfg),
        "evaluation": _evaluation(cfg),
        **({} if cfg.rule.name == "none" else {"rule": asdict(cfg.rule)}),
        **_routing(cfg),
        **({"behaviour": behaviour(cfg)} if recomputes(cfg) or cfg.behaviour == SAMPLER else {}),
    }


def run_id(cfg: Config) -> str:
    """A readable prefix and a hash, e.g. grpo-D128-tiny-chain-s0-1f3a9c20."""
    key = digest(identity(cfg), 8)
    delay = f"D{cfg.D}" if cfg.D is not None else f"lam{cfg.clock.lam:g}"
    delay = f"eta{cfg.clock.eta}" if cfg.suite_name == MEASURED else delay
    delay = re.sub(r"[^\w.]+", "_", cfg.delays.column)[:24] if cfg.suite_name == REPLAY else delay
    delay = "-".join([delay, *_policies(cfg.clock)])
    if cfg.mode == "trace":
        return f"{cfg.suite_name}-{delay}-N{cfg.updates}-s{cfg.seed}-{key}"
    rule = None if cfg.rule.name == "none" else cfg.rule.name
    parts = [estimator_name(cfg), rule, delay, _threshold(cfg), *_routed(cfg), f"G{cfg.G}", model_name(cfg)]
    return "-".join([*filter(None, parts), task_name(cfg), f"s{cfg.seed}", key])


def _policies(clock: ClockConf) -> list[str]:
    """The order and the limits on a group's life, where there are any."""
    order = [] if clock.order == DEFAULTS["order"] else [clock.order]
    limits = ("queue_drop", "age_max", "abort_age", "timeout")
    return order + [f"{name}{getattr(clock, name):g}" for name in limits if getattr(clock, name) is not None]


def run_path(cfg: Config) -> Path:
    """The directory of the run: runs/<suite>/<run_id>, traces under runs/trace."""
    family = "trace" if cfg.mode == "trace" else str(cfg.suite_name)
    return Path(cfg.runs_dir) / family / run_id(cfg)


def model_name(cfg: Config) -> str:
    """A short name of the model."""
    if "path" not in asdict(cfg.model):
        return str(cfg.model.kind)
    file = Path(cfg.model.path.removeprefix("pkg:")).name.lower()
    return file.split(".")[0] if file.endswith(".gguf") else file


def task_name(cfg: Config) -> str:
    """The task's name; of a user's file the file's, of a generated data set that one's."""
    if cfg.task.kind == "custom":
        return Path(cfg.task.path).stem
    return str(cfg.task.dataset if cfg.task.kind == "reasoning_gym" else cfg.task.kind)


def estimator_name(cfg: Config) -> str:
    """The estimator's name; of a user's file, the file's."""
    return Path(cfg.estimator.path).stem if cfg.estimator.name == "custom" else str(cfg.estimator.name)


def threshold(cfg: Config) -> float | None:
    """The estimator's threshold on the scale of `eps`; None where it has none, or a user's file keeps its own."""
    if cfg.estimator.name == "custom":
        return cfg.estimator.eps
    return dialled(discover()[cfg.estimator.name], cfg.estimator)


def needs_pilot(cfg: Config) -> bool:
    """Whether the law takes L_ref, the look-ahead or ranks of sizes from a pilot."""
    clock = cfg.clock
    if clock.slots is not None:
        return clock.L_ref == AUTO and not clock.speed
    return clock.lam > 0 and (AUTO in (clock.L_ref, clock.eta) or clock.coupling in RANKED)


def _model(cfg: Config) -> dict[str, Any]:
    model = {key: value for key, value in asdict(cfg.model).items() if key not in ONLY_PLANNED}
    if "path" in model:
        model["path"] = _model_content(model["path"])
        if model["lora"]["rank"] is None:
            del model["lora"]
        if model["experts_implementation"] is None:
            del model["experts_implementation"]
    return model


def _routing(cfg: Config) -> dict[str, Any]:
    """What an update replays and how far the sampler's routers lag, where either does."""
    kept = {"replay": cfg.routing.replay, "lag": cfg.routing.lag}
    return {} if kept == {"replay": NONE, "lag": 0} else {"routing": kept}


def _routed(cfg: Config) -> list[str]:
    """The same in a name."""
    replay = [] if cfg.routing.replay == NONE else [cfg.routing.replay]
    return replay + ([f"lag{cfg.routing.lag}"] if cfg.routing.lag else [])


def _threshold(cfg: Config) -> str | None:
    if cfg.estimator.name == "custom":
        return None if cfg.estimator.eps is None else f"eps{cfg.estimator.eps:g}"
    names = dial(discover()[cfg.estimator.name], cfg.estimator)
    return f"{names[0]}{getattr(cfg.estimator, names[0]):g}" if names else None


def _estimator(cfg: Config) -> dict[str, Any]:
    """Its settings; those of a user's file with 2 and 2.0 as one number."""
    values = _content(asdict(cfg.estimator))
    if cfg.estimator.name == "custom":
        values["settings"] = {key: _number(value) for key, value in values["settings"].items()}
    return values


def _task(cfg: Config) -> dict[str, Any]:
    """What the task reads; settings of a user's file or a generated data set with 2 and 2.0 as one number."""
    values = _content({key: value for key, value in asdict(cfg.task).items() if key not in NO_RESULT})
    if "settings" in values:
        values["settings"] = {key: _number(value) for key, value in values["settings"].items()}
    return values


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _sampler(cfg: Config) -> dict[str, Any]:
    """What decides its draws; without a precision or a kernel of its own it has none."""
    values = asdict(cfg.sampler)
    unread = {*ONLY_HOW, *(key for key in ("dtype", "experts_implementation") if values[key] is None)}
    return {key: value for key, value in values.items() if key not in unread}


def _learner(cfg: Config) -> dict[str, Any]:
    """What the learner reads: a penalty of weight 0 has no kind, and what is off by default counts where it is on."""
    unread = {"kl_penalty"} if cfg.learner.kl == 0 else set()
    unread |= {"final"} if cfg.learner.schedule == "constant" else set()
    unread |= {key for key, off in OFF.items() if getattr(cfg.learner, key) == off}
    return {key: value for key, value in asdict(cfg.learner).items() if key not in unread}


def _evaluation(cfg: Config) -> dict[str, Any]:
    return {key: value for key, value in asdict(cfg.evaluation).items() if (key, value) != ("batch", 64)}


def _clock(cfg: Config) -> dict[str, Any]:
    clock = cfg.clock
    if cfg.suite_name == REPLAY:
        return {"C_update": clock.C_update}
    read = {"C_gen", "C_update", "lam", "eta", "workers"}
    read |= {"L_ref", "t_min"} if clock.lam > 0 else set()
    read |= {"L_ref"} if clock.slots is not None and not clock.speed else set()
    read |= {"pilot"} if needs_pilot(cfg) else set()
    read |= {name for name in POLICIES if getattr(clock, name) != DEFAULTS[name]} - _unread(clock)
    kept = {key: value for key, value in asdict(clock).items() if key in read}
    numbers = {key: float(kept[key]) for key in ("L_ref", "L_cap") if kept.get(key, AUTO) != AUTO}
    speed = {"speed": [[float(x) for x in pair] for pair in clock.speed]} if "speed" in kept else {}
    return kept | numbers | speed


def _unread(clock: ClockConf) -> set[str]:
    """Settings of policies that are off."""
    off = {
        "L_cap": clock.coupling != "cap",
        "coupling": clock.lam == 0,
        "stat": clock.lam == 0 and clock.order != "shortest",
        "sync_mode": clock.sync_time == 0,
        "replay_window": clock.replay == 0,
    }
    return {name for name, unread in off.items() if unread}


def _lengths(cfg: Config) -> dict[str, Any]:
    values = _content(asdict(cfg.lengths))
    if cfg.clock.zero_variance == "kept":
        del values["flat"]
    return values


def _delays(cfg: Config) -> dict[str, Any]:
    """Recorded delays by what the file holds; short, since reports name runs of several files by it."""
    settings = _content(asdict(cfg.delays))
    return settings | {"path": settings["path"][:12]}


def _content(settings: dict[str, Any]) -> dict[str, Any]:
    paths = {key: value for key, value in settings.items() if key.endswith("path") and value is not None}
    return settings | {key: _digest(Path(value).absolute()) for key, value in paths.items()}


def _digest(path: Path) -> str:
    if not path.exists():
        return f"missing:{path}"
    stat = path.stat()
    return _cached_digest(path, stat.st_mtime_ns, stat.st_size)


@cache
def _cached_digest(path: Path, _changed: int, _size: int) -> str:
    return file_digest(path)


@cache
def _model_content(path: str) -> str:
    return model_digest(path)
