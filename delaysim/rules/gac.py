"""GAC (2603.01501), a *reconstruction*: its text and code were not available; its open choices are settings.

Known from digests: c, the cosine between this gradient and the previous one; thresholds 0.05 and 0.30; a one-sided
projection and a skip. Rebuilt as: c <= low, the gradient as it is; low < c <= high, its part along the previous
gradient is taken out; c > high, the step is skipped. It acts before gradient clipping, on no importance ratio.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

CHOICES = {"between": ("remove", "floor"), "above": ("skip", "remove", "floor"), "previous": ("raw", "applied")}


@dataclass
class Params:
    """Known: low 0.05, high 0.30. The other settings are choices of this reconstruction."""

    name: str = "gac"
    low: float = 0.05
    """Up to this cosine nothing is done."""
    high: float = 0.30
    """Above it the step is skipped, or what `above` says."""
    between: str = "remove"
    """remove: take the parallel part out whole; floor: leave as much as gives cosine `low`."""
    above: str = "skip"
    """skip | remove | floor."""
    signed: bool = True
    """False = opposite gradients count like aligned ones."""
    previous: str = "raw"
    """raw: compare with the last gradient as computed; applied: as projected, skipped steps forgotten."""


def direction(gradient: Tensor, previous: Tensor | None, params: Params) -> tuple[Tensor | None, Tensor | None]:
    """The gradient to apply and the one to remember; both flattened."""
    applied = gradient if previous is None else _projected(gradient, previous, params)
    if params.previous == "raw":
        return applied, gradient
    return applied, previous if applied is None else applied


def _projected(gradient: Tensor, previous: Tensor, params: Params) -> Tensor | None:
    c = cosine(gradient, previous)
    aligned = c if params.signed else abs(c)
    if aligned <= params.low:
        return gradient
    action = params.between if aligned <= params.high else params.above
    if action == "skip":
        return None
    exact, unit = gradient.double(), previous.double() / previous.double().norm()
    rest = exact - exact.dot(unit) * unit
    if action == "floor":
        rest = rest + params.low / sqrt(1 - params.low**2) * rest.norm() * unit * (1 if c > 0 else -1)
    return rest.to(gradient.dtype)


def cosine(one: Tensor, other: Tensor) -> float:
    """Cosine of two flattened gradients in double precision; 0 where one of them vanishes."""
    a, b = one.double(), other.double()
    size = float(a.norm() * b.norm())
    return float(a.dot(b)) / size if size > 0 else 0.0
