"""An estimator with its settings: what its file declares, and its coefficients for a batch.

A file must define `coefficients(batch, params)`. It may declare

    Params       dataclass of settings with defaults
    SCOPE        response | group | batch: what one response's coefficients may depend on (default batch)
    LEVEL        token | sequence | trajectory | none: the plain ratio its coefficients stand for (default token)
    NEEDS        inputs it reads beside log-ratios and mask, of base.INPUTS (default all)
    DIAL         the fields that the short name `eps` sets, one called `cap` to 1 + eps (default eps, if there is one)
    CHOICES      allowed values of text fields
    PUBLISHED    the Recipe of its paper, which recipe=published selects; built-in files only
    AT_DELAY_0   why kappa is not 1 there (default: it is)
    mass_bound(params)  see `Estimator.mass_bound` (default: None)
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields, is_dataclass, replace
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from delaysim.estimators.base import INPUTS, GroupBatch

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Estimator:
    """One file and one choice of settings."""

    name: str
    module: ModuleType
    params: Any

    def coefficients(self, batch: GroupBatch) -> Tensor:
        """Kappa [B, G, T], detached."""
        return self.module.coefficients(batch, self.params)  # type: ignore[no-any-return]

    @property
    def scope(self) -> str:
        """Response | group | batch."""
        return str(getattr(self.module, "SCOPE", "batch"))

    @property
    def level(self) -> str:
        """Token | sequence | trajectory | none."""
        return str(getattr(self.module, "LEVEL", "token"))

    @property
    def needs(self) -> tuple[str, ...]:
        """Inputs read beside log-ratios and mask."""
        return tuple(getattr(self.module, "NEEDS", INPUTS))

    @property
    def at_delay_0(self) -> str | None:
        """Why kappa is not 1 at delay 0; None where it is."""
        return getattr(self.module, "AT_DELAY_0", None)

    @property
    def mass_bound(self) -> float | None:
        """Largest group mean of kappa on one-token responses, where no weight kappa/rho exceeds 1.

        The estimator lies in GMC-GRPO's weighted class (2610.01896, Definition 1) for 1 + eps >= this bound. None: some
        weight exceeds 1, or the mean is not bounded, and it lies in the class for no eps.
        """
        bound = getattr(self.module, "mass_bound", None)
        return None if bound is None else float(bound(self.params))

    @property
    def eps(self) -> float | None:
        """The value of its first dial on the scale of `eps`; None where it has no threshold."""
        return dialled(self.module, self.params)

    def at(self, eps: float, keep: Collection[str] = ()) -> Estimator:
        """The same with every dial but those in `keep` set from `eps`."""
        names = [name for name in dial(self.module, self.params) if name not in keep]
        values = {name: 1 + eps if name == "cap" else eps for name in names}
        if is_dataclass(self.params):
            return replace(self, params=replace(self.params, **values))  # type: ignore[type-var]
        return replace(self, params=SimpleNamespace(**{**vars(self.params), **values}))


def dial(module: ModuleType, params: Any) -> tuple[str, ...]:
    """The fields that `eps` sets."""
    return tuple(getattr(module, "DIAL", ("eps",) if hasattr(params, "eps") else ()))


def dialled(module: ModuleType, params: Any) -> float | None:
    """The first dial's value on the scale of `eps`."""
    names = dial(module, params)
    if not names or getattr(params, names[0]) is None:
        return None
    return float(getattr(params, names[0])) - (names[0] == "cap")


def settings(params: Any) -> dict[str, Any]:
    """Its settings by name, without the name itself."""
    values = {f.name: getattr(params, f.name) for f in fields(params)} if is_dataclass(params) else dict(vars(params))
    values.pop("name", None)
    return values
