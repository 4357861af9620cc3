"""Looking at the result before all seeds have run, and what each look may spend of the error."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Looks:
    """When the seeds are looked at, and the nominal two-sided level of each. Raises ValueError if they do not fit."""

    seeds: tuple[int, ...] = (3, 5, 8)
    levels: tuple[float, ...] = (0.02, 0.02, 0.02)

    def __post_init__(self) -> None:
        grows = all(a < b for a, b in zip(self.seeds, self.seeds[1:], strict=False))
        if len(self.seeds) != len(self.levels) or not grows or not self.seeds or self.seeds[0] < 2:
            raise ValueError(f"looks at {self.seeds} with levels {self.levels}: growing, from 2 seeds, one level each")
        if not all(0 < level < 1 for level in self.levels):
            raise ValueError(f"levels {self.levels} lie between 0 and 1")


@dataclass(frozen=True)
class Operation:
    """What a schedule of looks does in the long run."""

    rejects: float
    """Chance that some look rejects: the overall level where there is no effect, else the power."""
    seeds: float
    """Mean number of seeds at which it stops."""


def look_level(seeds: int, looks: Looks) -> float:
    """The nominal level at a look of so many seeds. Raises ValueError for a number that is no look of the schedule."""
    if seeds not in looks.seeds:
        raise ValueError(f"{seeds} seeds is no look; the schedule looks at {', '.join(map(str, looks.seeds))}")
    return looks.levels[looks.seeds.index(seeds)]


def operate(looks: Looks, effect: float, rng: np.random.Generator, draws: int = 200_000) -> Operation:
    """Simulate paired t tests over normal differences with mean `effect` (in their standard deviations) and sd 1."""
    rejected = _p_values(looks.seeds, effect, rng, draws) <= np.array(looks.levels)
    first = np.where(rejected.any(1), rejected.argmax(1), len(looks.seeds) - 1)
    return Operation(float(rejected.any(1).mean()), float(np.array(looks.seeds)[first].mean()))


def spend(
    seeds: tuple[int, ...], alpha: float, rng: np.random.Generator, shares: tuple[float, ...] | None = None,
    draws: int = 200_000,
) -> Looks:  # fmt: skip
    """The schedule whose looks together reject a true null with chance `alpha`; levels in proportion to `shares`.

    Equal shares (Pocock 1977) where none are given; growing ones keep early looks strict (O'Brien and Fleming 1979).
    By simulation: the alpha quantile of the smallest p over share, and so good to about sqrt(alpha/draws).
    """
    weights = np.ones(len(seeds)) if shares is None else np.array(shares, dtype=float) / max(shares)
    smallest = (_p_values(seeds, 0.0, rng, draws) / weights).min(1)
    return Looks(seeds, tuple(float(level) for level in np.quantile(smallest, alpha) * weights))


def _p_values(seeds: tuple[int, ...], effect: float, rng: np.random.Generator, draws: int) -> Array:
    """Two-sided p of the paired t at each look: (draws, looks)."""
    x = rng.standard_normal((draws, seeds[-1])) + effect
    at = np.array(seeds)
    sums, squares = (np.cumsum(values, 1)[:, at - 1] for values in (x, x**2))
    se = np.sqrt((squares - sums**2 / at) / (at - 1) / at)
    return np.asarray(2 * stdtr(at - 1, -np.abs(sums / at) / se))
