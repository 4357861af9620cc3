"""What the theory of GMC-GRPO (2610.01896) promises a delay schedule, as formulas (docs/theory.md). No torch, no files.

tau4 is the mean over consumed groups of delay^4 [updates^4], N the updates of a run, eps the threshold. A constant
named `constant` is gmc_constant(eps) or tic_constant(eps). The paper gives its rates up to constants; `Unit` holds
them, 1 unless set, so a number is comparable with another of the same `Unit`, and not a prediction.
"""

from dataclasses import dataclass
from math import expm1, inf, isfinite, log, log1p, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from delaysim.estimators.base import LOG_KAPPA_BOUND

METHODS = {"gmc": 1 / 7, "tic": 1 / 9}
"""Each method's power of tau4/N^(3/2) in its eps*."""
LOWEST = -750.0
"""Log-ratios below count as this: rho is 0 in double precision either way, and -inf * 0 would be no number."""


@dataclass(frozen=True)
class Unit:
    """The constants the paper leaves open: of the bound, decay/(step*N) + moment*step + drift*step^4*tau4/constant^2,
    and of Corollary 1, K = `threshold`.
    """

    decay: float = 1.0
    moment: float = 1.0
    drift: float = 1.0
    threshold: float = 1.0


UNIT = Unit()


def gmc_constant(eps: float) -> float:
    """Return l = log(1 + 2 eps), by which GMC's bias is divided; about 2 eps for small eps.

    Dimensionless. ValueError unless eps > 0 is finite. Source: 2610.01896, Theorem 1.
    """
    return log1p(2 * _positive("eps", eps))


def tic_constant(eps: float) -> float:
    """Return c = log(1 + eps) - eps/(1 + eps), by which TIC's bias is divided; about eps^2/2 for small eps.

    Dimensionless. ValueError unless eps > 0 is finite. Source: 2610.01896, Theorem 2.
    """
    x = _positive("eps", eps) / (1 + eps)
    if x < 1e-3:  # -log(1-x) - x loses its digits here
        return x * x * (1 / 2 + x * (1 / 3 + x * (1 / 4 + x * (1 / 5 + x / 6))))
    return log1p(eps) - x


def sharp_constant(eps: float) -> float:
    """Return kappa*, the largest constant that may stand for l: the root of (e^kappa - 1)/kappa = 1 + eps.

    Dimensionless; l <= kappa* <= 2l. ValueError unless eps > 0 is finite. Source: derived here (docs/theory.md).
    """
    low = gmc_constant(eps)
    if eps < 1e-4:  # the difference below loses its digits here
        return eps * (2 - eps * (4 / 3 - eps * 10 / 9))
    return float(brentq(lambda k: expm1(k) / k - 1 - eps, low, 2 * low, xtol=1e-15))


def coefficient_ratio(eps: float) -> float:
    """Return l/c. Its square divides TIC's delay coefficient by GMC's at the same step size.

    Dimensionless. ValueError unless eps > 0 is finite. Source: 2610.01896, Remark 5.
    """
    return gmc_constant(eps) / tic_constant(eps)


def tuned_factor(eps: float) -> float:
    """Return (c/l)^(2/5): GMC's delay term over TIC's once each has its own step size.

    Dimensionless. ValueError unless eps > 0 is finite. Source: 2610.01896, Remark 5.
    """
    return coefficient_ratio(eps) ** -0.4


def fourth_moment(delays: ArrayLike) -> float:
    """Return tau4 of a realised schedule: the mean of delay^4 over its consumed groups, warm-up included.

    Delays in updates, any shape. ValueError unless there are some, finite and >= 0. Source: 2610.01896, Theorem 1.
    """
    values = np.asarray(delays, np.float64)
    if not values.size or not np.isfinite(values).all() or (values < 0).any():
        raise ValueError("delays: give one or more finite numbers, none below 0")
    return float(np.mean(values**4))


def constant_fourth_moment(delay: float) -> float:
    """Return tau4 of the paper's constant delay, delay^4: from the first update on, which no run can do.

    Delay in updates. ValueError where it is negative or not finite. Source: 2610.01896, Remark 2.
    """
    return fourth_moment([delay])


def fixed_delay_fourth_moment(n_updates: int, delay: int) -> float:
    """Return tau4 of the schedule min(n, D), n = 0..N-1: what a fixed delay is in a run that starts at version 0.

    N and D in updates. ValueError unless N >= 1 and D >= 0. Source: derived here, by the sum of fourth powers.
    """
    if n_updates < 1 or delay < 0:
        raise ValueError(f"n_updates={n_updates}, delay={delay}: give 1 or more updates and a delay of 0 or more")
    d = min(delay, n_updates)
    ramp = (d - 1) * d * (2 * d - 1) * (3 * d * d - 3 * d - 1) // 30
    return (ramp + (n_updates - d) * d**4) / n_updates


def growth_exponent(tau4: float, n_updates: int) -> float:
    """Return p with tau4 = N^p; -inf without delay.

    tau4 in updates^4. ValueError unless tau4 >= 0 is finite and N >= 2. Source: 2610.01896, Remark 2.
    """
    return log(tau4) / log(_updates(n_updates)) if _nonnegative("tau4", tau4) else -inf


def rate_exponent(p: float) -> float | None:
    """Return r of the guaranteed rate O(N^-r) where tau4 grows as N^p: 1/2 up to p = 3/2, (4-p)/5 up to 4, then None.

    ValueError where p is not a number. Source: 2610.01896, Remark 2.
    """
    if np.isnan(p):
        raise ValueError("p is not a number")
    return None if p >= 4 else min(0.5, (4 - p) / 5)


def free_fourth_moment(n_updates: int) -> float:
    """Return N^(3/2), the largest tau4 that leaves the exponent at 1/2.

    In updates^4, for constants of 1. ValueError unless N >= 2. Source: 2610.01896, Remark 2.
    """
    return float(_updates(n_updates)) ** 1.5


def free_delay(n_updates: int) -> float:
    """Return N^(3/8), the largest constant delay that leaves the exponent at 1/2.

    In updates, for constants of 1. ValueError unless N >= 2. Source: 2610.01896, Remark 2.
    """
    return float(_updates(n_updates)) ** 0.375


def bound(step: float, tau4: float, n_updates: int, constant: float, unit: Unit = UNIT) -> float:
    """Return decay/(step*N) + moment*step + drift*step^4*tau4/constant^2: the convergence bound before tuning.

    ValueError unless step and constant are > 0, tau4 >= 0, N >= 2. Source: 2610.01896, Lemma 1 with the drift of its
    proof outline.
    """
    bias = unit.drift * _positive("step", step) ** 4 * _nonnegative("tau4", tau4) / _positive("constant", constant) ** 2
    return unit.decay / (step * _updates(n_updates)) + unit.moment * step + bias


def tuned_step(tau4: float, n_updates: int, constant: float, unit: Unit = UNIT) -> float:
    """Return the step that balances `bound`: min{N^(-1/2), (constant^2/(N tau4))^(1/5)}.

    ValueError as in `bound`. Source: derived here; it gives every exponent of 2610.01896, Remarks 2 and 5.
    """
    balanced = sqrt(unit.decay / unit.moment / _updates(n_updates))
    if not _nonnegative("tau4", tau4):
        return balanced
    gain = unit.decay / unit.drift * _positive("constant", constant) ** 2
    return min(balanced, (gain / (n_updates * tau4)) ** 0.2)


def delay_term(tau4: float, n_updates: int, constant: float, unit: Unit = UNIT) -> float:
    """Return what delay adds to the tuned rate: N^(-4/5) tau4^(1/5) constant^(-2/5).

    ValueError as in `bound`. Source: 2610.01896, Remark 5; derived here from `tuned_step`.
    """
    drift = unit.drift * _nonnegative("tau4", tau4) / _positive("constant", constant) ** 2
    return float((unit.decay / _updates(n_updates)) ** 0.8 * drift**0.2)


def rate(tau4: float, n_updates: int, constant: float, unit: Unit = UNIT) -> float:
    """Return the tuned rate, N^(-1/2) plus `delay_term`: the least `bound` lies between 0.9 and 2 times this.

    ValueError as in `bound`. Source: 2610.01896, Remark 2; the factors derived here.
    """
    return sqrt(unit.decay * unit.moment / _updates(n_updates)) + delay_term(tau4, n_updates, constant, unit)


def optimal_eps(tau4: float, n_updates: int, method: str = "gmc", unit: Unit = UNIT, cap: float = 1.0) -> float:
    """Return eps*, the threshold of the least tuned rate: min{cap, K (tau4/N^(3/2))^(1/7)}, for tic ^(1/9).

    ValueError unless tau4 >= 0, N >= 2, a method of METHODS. Source: 2610.01896, Corollary 1; tic derived here.
    """
    if method not in METHODS:
        raise ValueError(f"method={method!r}: choose one of {', '.join(METHODS)}")
    return min(cap, unit.threshold * (_nonnegative("tau4", tau4) / free_fourth_moment(n_updates)) ** METHODS[method])


def group_factor(old: int, new: int) -> float:
    """Return (new/old)^(-2/5): GMC's delay term at `new` responses a group over the one at `old`.

    Holds near the behaviour policy only, |rho - 1| <= delta for certain, and then has a factor (1 + delta)^2 of its
    own. ValueError unless both sizes are > 0. Source: 2610.01896, Corollary 2.
    """
    return float((_positive("group size", new) / _positive("group size", old)) ** -0.4)


def removed_bound(kl: float, constant: float) -> float:
    """Return KL(pi||mu)/constant, the most importance mass GMC (l or kappa*) or TIC (c) removes.

    KL in nats per response, current over behaviour policy, not the reverse. ValueError unless KL >= 0 is finite and
    constant > 0. Source: 2610.01896, proof outline of Theorem 1; proof in docs/theory.md.
    """
    return _nonnegative("kl", kl) / _positive("constant", constant)


class KlEstimate(NamedTuple):
    """A plug-in estimate [nats] and how many responses were cut down to the bound: where any was, it is too low."""

    nats: float
    saturated: int


def kl_estimate(log_ratios: ArrayLike) -> KlEstimate:
    """Return KL(pi||mu) from responses of mu: the mean of rho log rho - rho + 1, never negative, unbiased.

    log rho of whole responses [nats], any shape; each saturates at 30, as recorded ratios do. ValueError where there is
    none or one is NaN. Source: derived here; the usual k1 and k3 estimate the other direction from these responses.
    """
    x = np.asarray(log_ratios, np.float64)
    if not x.size or np.isnan(x).any():
        raise ValueError("log_ratios: give one or more, and none that is not a number")
    y = np.clip(x, LOWEST, LOG_KAPPA_BOUND)
    e = np.expm1(y)
    return KlEstimate(float(np.mean(y * e - (e - y)).clip(0)), int((x > LOG_KAPPA_BOUND).sum()))


@dataclass(frozen=True)
class Tuned:
    """What the theory says of one method: tuned step, delay term, rate, eps* at most 1 and not cut."""

    step: float
    delay: float
    rate: float
    eps: float
    eps_uncapped: float


@dataclass(frozen=True)
class Report:
    """What the theory says of one schedule. `free`: tau4 <= N^(3/2). `group_factor`: against groups of one response."""

    n_updates: int
    eps: float
    group_size: int
    tau4: float
    p: float
    exponent: float | None
    free: bool
    group_factor: float
    gmc: Tuned
    tic: Tuned


def report(delays: ArrayLike, n_updates: int, eps: float = 0.28, group_size: int = 8, unit: Unit = UNIT) -> Report:
    """Return every number of one schedule: an array of the delays of its consumed groups, or tau4 as one number.

    Delays in updates, tau4 in updates^4. ValueError as in the functions above. Source: derived here from them.
    """
    tau4 = fourth_moment(delays) if np.ndim(delays) else _nonnegative("tau4", float(np.asarray(delays)))
    p, free = growth_exponent(tau4, n_updates), tau4 <= free_fourth_moment(n_updates)
    gmc = _tuned("gmc", gmc_constant(eps), tau4, n_updates, unit)
    tic = _tuned("tic", tic_constant(eps), tau4, n_updates, unit)
    factor = group_factor(1, group_size)
    return Report(n_updates, eps, group_size, tau4, p, rate_exponent(p), free, factor, gmc, tic)


def _tuned(method: str, constant: float, tau4: float, n_updates: int, unit: Unit) -> Tuned:
    best = optimal_eps(tau4, n_updates, method, unit, cap=inf)
    given = (tau4, n_updates, constant, unit)
    return Tuned(tuned_step(*given), delay_term(*given), rate(*given), min(1.0, best), best)


def _positive(name: str, value: float) -> float:
    if not (isfinite(value) and value > 0):
        raise ValueError(f"{name}={value}: give a finite number above 0")
    return value


def _nonnegative(name: str, value: float) -> float:
    if not (isfinite(value) and value >= 0):
        raise ValueError(f"{name}={value}: give a finite number, 0 or more")
    return value


def _updates(n_updates: int) -> int:
    if n_updates < 2:
        raise ValueError(f"n_updates={n_updates}: give 2 or more")
    return n_updates
