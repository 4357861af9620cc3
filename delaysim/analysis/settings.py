"""A run's settings as one flat table, under the names that people type."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from delaysim.settings.configfile import load_config
from delaysim.settings.identity import DEFAULTS, OFF, POLICIES, estimator_name
from delaysim.settings.routing import NONE

SHORT = {
    "clock.C_gen": "C_gen", "clock.C_update": "C_update", "clock.lam": "lam", "learner.lr": "lr",
    "estimator.eps": "eps", "model.kind": "model", "task.kind": "task", "sampler.kind": "sampler",
    "rule.name": "rule", "routing.replay": "routing",
}  # fmt: skip
"""Short names of the command line for nested settings."""
DROP, NO_DROP = "drop", "none"
LIMITS = ("queue_drop", "age_max", "abort_age", "timeout", "requeue", "attempts")
"""What one setting `drop` tells: the limits on a group's life, and what becomes of its prompt."""
UNSAID = {
    DROP: NO_DROP,
    "routing": NONE,
    "routing.lag": 0,
    "sampler.dtype": None,
    "sampler.experts_implementation": None,
    **{f"clock.{name}": DEFAULTS[name] for name in sorted(POLICIES - {*LIMITS})},
    **{f"learner.{name}": value for name, value in OFF.items()},
}
"""What a setting is where a run does not have it."""


def run_settings(run: Path, identity: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that decide a run's rows, but its seed; `estimator` names the loss and the update rule beside it."""
    flat = dict(_flat({key: value for key, value in identity.items() if key not in ("seed", "estimator")}))
    flat |= dict(_flat({"estimator": {k: v for k, v in identity["estimator"].items() if k != "name"}}))
    name = identity["estimator"]["name"]
    name = estimator_name(load_config(run / "config.yaml")) if name == "custom" else name
    rule = identity.get("rule", {}).get("name")
    short = {**SHORT, "clock.eta": "D" if identity["suite"] == "fixed_delay" else "eta"}
    named = {short.get(key, key): value for key, value in with_drop(flat).items()}
    return {"suite": identity["suite"], "estimator": f"{name}+{rule}" if rule else name, **named}


def with_drop(flat: Mapping[str, Any]) -> dict[str, Any]:
    """The same with LIMITS as one setting, e.g. drop=age_max=30 or drop=timeout=40+requeue; none where none is set."""
    limits = {name: flat[f"clock.{name}"] for name in LIMITS if f"clock.{name}" in flat}
    rest = {key: value for key, value in flat.items() if key not in {f"clock.{name}" for name in limits}}
    said = "+".join(name if value is True else f"{name}={value:g}" for name, value in limits.items())
    return {**rest, DROP: said} if said else rest


def _flat(nested: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in nested.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", tuple(value) if isinstance(value, list) else value
