"""The scripts of analysis/ as modules. Their folder is not on the path: `estimators` would hide tests/estimators."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "analysis"


def script(name):
    """A script by its name, known under it to those that are loaded after it."""
    spec = spec_from_file_location(name, FOLDER / f"{name}.py")
    sys.modules[name] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
