"""The estimator and the update rule that a configuration names, a user's file included."""

import importlib.util
import sys
import traceback
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from delaysim.errors import UserError
from delaysim.estimators import discover
from delaysim.estimators.base import LEVELS, SCOPES
from delaysim.estimators.interface import Estimator, dial
from delaysim.settings.config import CustomConf


def chosen_estimator(conf: Any) -> Estimator:
    """From the group `estimator`. Raises UserError where a user's file cannot be used."""
    if isinstance(conf, CustomConf):
        return load_estimator(Path(conf.path), dict(conf.settings), conf.eps)
    return Estimator(conf.name, discover()[conf.name], conf)


def load_estimator(path: Path, settings: dict[str, Any], eps: float | None = None) -> Estimator:
    """A user's file with settings for its Params. Raises UserError that names the file and what is wrong."""
    module = import_file(path, "coefficients(batch, params)")
    if not callable(getattr(module, "coefficients", None)):
        raise UserError(f"{path}: define coefficients(batch, params); docs/estimators/README.md shows a whole file")
    for name, known in (("SCOPE", SCOPES), ("LEVEL", LEVELS)):
        value = getattr(module, name, known[0])
        if value not in known:
            raise UserError(f"{path}: {name} = {value!r}; choose one of {', '.join(known)}")
    estimator = Estimator(path.stem, module, _params(path, module, settings))
    for name in dial(module, estimator.params):
        if not hasattr(estimator.params, name):
            raise UserError(f"{path}: DIAL names {name}, which is no field of its Params")
    if eps is None:
        return estimator
    if not dial(module, estimator.params):
        raise UserError(f"eps={eps:g}: {path} has no threshold: give its Params a field eps, or drop eps")
    return estimator.at(eps, keep=settings)  # a field's own key wins over the short name


def _params(path: Path, module: ModuleType, settings: dict[str, Any]) -> Any:
    cls = getattr(module, "Params", None)
    if cls is None:
        return SimpleNamespace(**settings)
    if not is_dataclass(cls):
        raise UserError(f"{path}: Params must be a dataclass; write @dataclass above it")
    known = [field.name for field in fields(cls)]
    for name in settings:
        if name not in known:
            raise UserError(f"{path}: its Params has no {name}; choose one of {', '.join(known) or 'none'}")
        choices = getattr(module, "CHOICES", {}).get(name)
        if choices and settings[name] not in choices:
            raise UserError(f"{path}: {name}={settings[name]}: choose one of {', '.join(choices)}")
    try:
        return cls(**settings)  # type: ignore[operator]
    except TypeError as error:
        raise UserError(f"{path}: {error}; give every field of Params a default") from None


def import_file(path: Path, needs: str) -> ModuleType:
    """A user's Python file as a module. Raises UserError that names the file and the line."""
    if not path.is_file():
        raise UserError(f"{path} is not a file: give the path of a Python file with {needs}")
    spec = importlib.util.spec_from_file_location(f"delaysim_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UserError(f"{path} is not a Python file: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up by name
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        text = " ".join(str(error).split())
        raise UserError(f"{where(error, path)}: {type(error).__name__}: {text}") from error
    return module


def where(error: BaseException, path: Path) -> str:
    """The line of a user's file an error comes from, as far as it says."""
    file = str(path.absolute())
    if isinstance(error, SyntaxError) and error.filename == file:
        return f"{path}, line {error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f"{path}, line {lines[-1]}" if lines else str(path)
