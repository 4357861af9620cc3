"""What a run is: the settings that were read and decide its rows, their hash, and the name made of them. No torch."""

from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from delaysim.data import model_digest
from delaysim.files import digest, file_digest
from delaysim.settings.config import AUTO, Config

ONLY_PLANNED = ("seconds_per_update",)
"""Settings of mode=plan alone."""


def identity(cfg: Config) -> dict[str, Any]:
    """The settings that decide a run's rows, contents in place of paths; equal settings are the same run."""
    shared = {"suite": cfg.suite_name, "clock": _clock(cfg), "B": cfg.B, "G": cfg.G, "N": cfg.updates, "seed": cfg.seed}
    if cfg.mode == "trace":
        return {**shared, "lengths": _content(asdict(cfg.lengths)), "pilot_seed": cfg.model.seed}
    model = {key: value for key, value in asdict(cfg.model).items() if key not in ONLY_PLANNED}
    if "path" in model:
        model["path"] = _model_content(model["path"])
    return {
        **shared,
        "model": model,
        "task": _content(asdict(cfg.task)),
        "sampler": asdict(cfg.sampler),
        "estimator": asdict(cfg.estimator),
        "learner": asdict(cfg.learner),
        "evaluation": asdict(cfg.evaluation),
    }


def run_id(cfg: Config) -> str:
    """A readable prefix and a hash, e.g. grpo-D128-tiny-chain-s0-1f3a9c20."""
    key = digest(identity(cfg), 8)
    delay = f"D{cfg.D}" if cfg.D is not None else f"lam{cfg.clock.lam:g}"
    if cfg.mode == "trace":
        return f"{cfg.suite_name}-{delay}-N{cfg.updates}-s{cfg.seed}-{key}"
    eps = getattr(cfg.estimator, "eps", None)
    parts = [cfg.estimator.name, delay, None if eps is None else f"eps{eps:g}", f"G{cfg.G}", model_name(cfg)]
    return "-".join([*filter(None, parts), cfg.task.kind, f"s{cfg.seed}", key])


def run_path(cfg: Config) -> Path:
    """The directory of the run: runs/<suite>/<run_id>, traces under runs/trace."""
    family = "trace" if cfg.mode == "trace" else str(cfg.suite_name)
    return Path(cfg.runs_dir) / family / run_id(cfg)


def model_name(cfg: Config) -> str:
    """A short name of the model."""
    if cfg.model.kind == "tiny":
        return "tiny"
    return Path(cfg.model.path.removeprefix("pkg:")).name.split(".")[0].lower()


def needs_pilot(cfg: Config) -> bool:
    """Whether the law takes L_ref or the look-ahead from a pilot."""
    return cfg.clock.lam > 0 and AUTO in (cfg.clock.L_ref, cfg.clock.eta)


def _clock(cfg: Config) -> dict[str, Any]:
    clock = asdict(cfg.clock)
    read = {"C_gen", "C_update", "lam", "eta", "workers"}
    if cfg.clock.lam > 0:
        read |= {"L_ref", "t_min"}
    if needs_pilot(cfg):
        read |= {"pilot"}
    kept = {key: value for key, value in clock.items() if key in read}
    return {key: float(value) if key == "L_ref" and value != AUTO else value for key, value in kept.items()}


def _content(settings: dict[str, Any]) -> dict[str, Any]:
    paths = {key: value for key, value in settings.items() if key.endswith("path") and value is not None}
    return settings | {key: _cached_digest(str(Path(value).absolute())) for key, value in paths.items()}


@cache
def _cached_digest(path: str) -> str:
    return file_digest(Path(path)) if Path(path).exists() else f"missing:{path}"


@cache
def _model_content(path: str) -> str:
    return model_digest(path)
