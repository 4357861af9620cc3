"""One estimator per file, declared as `interface` says. Every other file found here is an estimator.

Nothing in this folder imports torch: the rules use tensor methods only, so help, plan and trace stay light.
"""

from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from delaysim.estimators.interface import Estimator

SHARED = ("advantage", "base", "interface", "penalty")


@cache
def discover() -> dict[str, ModuleType]:
    """Every estimator by name, sorted; the name is the file's, without a trailing underscore."""
    files = sorted(path.stem for path in Path(__file__).parent.glob("*.py"))
    names = [stem for stem in files if not stem.startswith("__") and stem not in SHARED]
    return {stem.rstrip("_"): import_module(f"{__name__}.{stem}") for stem in names}


def make(name: str, **settings: Any) -> Estimator:
    """A built-in estimator, its published settings replaced by those given."""
    module = discover()[name]
    return Estimator(name, module, module.Params(**settings))
