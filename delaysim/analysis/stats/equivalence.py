"""Claims of no difference: shown by an interval, never by a p that is not small."""

from delaysim.analysis.stats.estimates import Estimate, upper_tail


def tost(of: Estimate, margin: float) -> float:
    """P of two one-sided t tests that the mean lies outside +-margin (Schuirmann 1987). NaN with one seed."""
    _check(margin)
    return max(no_worse(of, margin), upper_tail(margin - of.mean, of.se, of.df))


def no_worse(of: Estimate, margin: float) -> float:
    """One-sided p that the mean is -margin or less: small = no worse by more than `margin`. NaN with one seed."""
    _check(margin)
    return upper_tail(of.mean + margin, of.se, of.df)


def equivalent(of: Estimate, margin: float, alpha: float = 0.025) -> bool:
    """Whether TOST rejects at `alpha`: the 1 - 2 alpha interval lies inside +-margin. False with one seed.

    At .025 that is the 95 % interval which stands beside it; the usual .05 reads a 90 % interval.
    """
    return tost(of, margin) <= alpha


def _check(margin: float) -> None:
    if not margin > 0:
        raise ValueError(f"margin {margin} is above 0")
