"""What an experiment could have seen, and how many seeds would settle it."""

from collections.abc import Callable
from math import inf, nan, sqrt

from scipy.special import nctdtr, nctdtrinc

from delaysim.analysis.stats.estimates import Components, Estimate, quantile

POWER, ALPHA = 0.8, 0.05
MOST_SEEDS = 1 << 20


def mde(se: float, df: float, power: float = POWER, alpha: float = ALPHA) -> float:
    """Minimal detectable effect: the true mean that a two-sided t test at `alpha` finds with chance `power`.

    `se` and `df` of an Estimate; NaN where they are. Noncentral t; the chance of the wrong sign is left out.
    """
    if not (se >= 0 and df > 0):
        return nan
    return float(nctdtrinc(df, 1 - power, quantile(1 - alpha / 2, df))) * se


def power_of(effect: float, se: float, df: float, alpha: float = ALPHA) -> float:
    """Chance that a two-sided t test at `alpha` finds a true mean of `effect`, with its sign."""
    if not (se >= 0 and df > 0):
        return nan
    if se == 0:
        return 1.0 if effect else alpha / 2
    return 1 - float(nctdtr(df, abs(effect) / se, quantile(1 - alpha / 2, df)))


def seeds_needed(of: Estimate, effect: float | None = None, power: float = POWER, alpha: float = ALPHA) -> float:
    """Seeds in all at which a true difference of `effect` (the one observed) is found with chance `power`.

    inf: the problems alone forbid it, more seeds cannot help and more problems could. NaN: one seed, which does not
    tell how seeds differ. The components are estimates, from few seeds rough ones: read it as an order of magnitude.
    """
    size = abs(of.mean if effect is None else effect)
    return _fewest(of, lambda at: power_of(size, sqrt(at.variance), at.df, alpha) >= power)


def seeds_for_width(of: Estimate, half_width: float) -> float:
    """Seeds in all at which the interval is no wider than +-half_width; inf and NaN as in `seeds_needed`."""
    level = (1 + of.confidence) / 2
    return _fewest(of, lambda at: quantile(level, at.df) * sqrt(at.variance) <= half_width)


def _fewest(of: Estimate, enough: Callable[[Components], bool]) -> float:
    """The smallest number of seeds that is enough, by bisection: what more seeds do is monotone.

    Whether the seeds at hand are enough is told by their own error, not by the prediction.
    """
    if not of.seed_variance:
        return nan

    def holds(seeds: int) -> bool:
        return enough(of.components.with_seeds(seeds))

    if enough(of.components):
        low, high = 1, of.seeds
    elif holds(MOST_SEEDS):
        low, high = of.seeds, MOST_SEEDS
    else:
        return inf
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return float(high)
