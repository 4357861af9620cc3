"""A run's own config.yaml: written once, resolved, and enough to resume the run from anywhere. No torch."""

from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args

from omegaconf import OmegaConf

from delaysim import estimators, presets, rules
from delaysim.errors import UserError
from delaysim.files import write_atomic
from delaysim.settings.config import Config, CustomConf, LognormalConf, RecordedConf
from delaysim.settings.models import MODELS
from delaysim.settings.samplers import SAMPLERS
from delaysim.settings.tasks import TASKS

KINDS: dict[str, dict[str, type]] = {
    "model": MODELS,
    "task": TASKS,
    "sampler": SAMPLERS,
}


def save_config(cfg: Config, path: Path) -> None:
    """Write the resolved configuration, file paths made absolute."""
    write_atomic(path, OmegaConf.to_yaml(OmegaConf.create(_absolute(asdict(cfg)))).encode())


def load_config(path: Path) -> Config:
    """Read a run's configuration back. Raises UserError when it is missing or of another layout."""
    try:
        values: dict[str, Any] = OmegaConf.to_container(OmegaConf.load(path))  # type: ignore[assignment]
        return _build(values)
    except FileNotFoundError:
        raise UserError(f"{path.parent} is not a run directory: it has no config.yaml") from None
    except (TypeError, KeyError, ValueError) as error:
        raise UserError(f"{path} does not fit this version of delaysim: {error}") from None


def _build(values: dict[str, Any]) -> Config:
    nested = dict(values)
    for group, kinds in KINDS.items():
        nested[group] = _typed(kinds[values[group]["kind"]], values[group])
    custom = values["estimator"]["name"] == "custom"
    params = CustomConf if custom else estimators.discover()[values["estimator"]["name"]].Params
    nested["estimator"] = params(**values["estimator"])
    nested["rule"] = rules.discover()[values["rule"]["name"]].Params(**values["rule"])
    if knobs := values.get("preset"):
        nested["preset"] = presets.discover()[knobs["name"]].Knobs(**knobs)
    nested["lengths"] = (RecordedConf if "path" in values["lengths"] else LognormalConf)(**values["lengths"])
    return _typed(Config, nested)


def _typed(kind: type, values: dict[str, Any]) -> Any:
    """A dataclass from its values, those of its own dataclasses included."""
    built = dict(values)
    for field in fields(kind):
        nested = [t for t in (field.type, *get_args(field.type)) if is_dataclass(t)]
        if nested and isinstance(built.get(field.name), dict):
            built[field.name] = _typed(nested[0], built[field.name])  # type: ignore[arg-type]
    return kind(**built)


def _absolute(values: dict[str, Any]) -> dict[str, Any]:
    """Data files by absolute path, so that a run can be resumed from another directory."""
    result = dict(values)
    for group in ("task", "lengths", "delays", "model", "estimator"):
        result[group] = {key: _place(key, value) for key, value in values[group].items()}
    return result


def _place(key: str, value: Any) -> Any:
    is_file = key.endswith("path") and isinstance(value, str) and Path(value).exists()
    return str(Path(value).absolute()) if is_file else value
