"""How long a group takes for its size, in units of C_gen: one function per coupling (clock.md sec. 1, A to D and F)."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from math import exp, log
from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from delaysim.clock.law import Law

STATS: dict[str, Callable[[Sequence[int]], float]] = {"max": max, "mean": fmean, "sum": sum}
"""The size of a group by its response lengths: its slowest response, or the work of all."""


def stretch(law: "Law", size: float) -> float:
    """Duration of a group of this size [units of C_gen]; 1 without coupling."""
    return max(law.t_min, COUPLINGS[law.coupling](law, size)) if law.lam else 1.0


def affine(law: "Law", size: float) -> float:
    """1 + lam * (size / L_ref - 1)."""
    return 1.0 + law.lam * (size / law.l_ref - 1.0)


def power(law: "Law", size: float) -> float:
    """(size / L_ref) ** lam."""
    return float((size / law.l_ref) ** law.lam)


def exponential(law: "Law", size: float) -> float:
    """exp(lam * z), z the log-size in standard deviations of the pilot's from their mean."""
    mean, spread = law.log_sizes
    return exp(law.lam * (log(size) - mean) / spread) if spread else 1.0


def cap(law: "Law", size: float) -> float:
    """1 + lam * size / L_cap."""
    return 1.0 + law.lam * size / law.l_cap


def rank(law: "Law", size: float) -> float:
    """-log(1 - u) / lam, u the size's rank among the pilot's: exponential durations, the longest groups last."""
    below, upto = bisect_left(law.pilot_sizes, size), bisect_right(law.pilot_sizes, size)
    return -log(1.0 - ((below + upto) / 2 + 0.5) / (len(law.pilot_sizes) + 1)) / law.lam


COUPLINGS: dict[str, Callable[["Law", float], float]] = {
    "affine": affine, "power": power, "exp": exponential, "cap": cap, "rank": rank,
}  # fmt: skip
