"""Update rules: what acts on whole gradients and step sizes, beside any estimator. One per file.

A file defines the dataclass `Params` and any of

    advantages(batch, kappa, squared_norms, params)   [B, G] advantages from each response's squared gradient norm
    step_scale(batch, kappa, params)                  the factor of this step's learning rate
    direction(gradient, previous, params)             the gradient to apply (None = skip the step), the one to remember

Nothing in this folder imports torch.
"""

from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType


@cache
def discover() -> dict[str, ModuleType]:
    """Every rule by name, sorted."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("__"))
    return {name: import_module(f"{__name__}.{name}") for name in names}
