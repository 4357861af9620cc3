"""Closed forms: mean waits of queues, throughput of machines under repair, staleness of a training pipeline.

Rates are per unit of time, `load` is arrival rate times mean service time, waits do not include the service.
"""

from math import exp, factorial

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm, poisson

PERIODS = 5000
"""Terms of Crommelin's series."""


def mmc_wait(rate: float, servers: int, service: float = 1.0) -> float:
    """Mean wait with Poisson arrivals and `servers` exponential servers (Erlang 1917, his C formula)."""
    load = rate * service
    below = sum(load**k / factorial(k) for k in range(servers))
    full = load**servers / factorial(servers) / (1 - load / servers)
    return full / (below + full) * service / (servers - load)


def mg1_wait(rate: float, service: float, second_moment: float) -> float:
    """Mean wait with one server and any service time (Pollaczek 1930, Khinchine 1932)."""
    return rate * second_moment / (2 * (1 - rate * service))


def mdc_wait(rate: float, servers: int, service: float = 1.0) -> float:
    """Mean wait with constant service times (Crommelin 1932)."""
    load = rate * service
    period = np.arange(1, PERIODS)
    busy = poisson.sf(period * servers - 1, period * load)
    waits = poisson.sf(period * servers, period * load)
    return float(service * np.sum(busy - servers / load * waits))


def repairman_throughput(machines: int, up: float, repair: float) -> float:
    """Repairs per unit: machines that run for `up` on average, one repairman, exponential repairs (Palm 1947).

    The distribution of the running time does not matter.
    """
    weights = [factorial(machines) / factorial(machines - down) * (repair / up) ** down for down in range(machines + 1)]
    return (1 - weights[0] / sum(weights)) / repair


def lognormal_second_moment(sigma: float) -> float:
    """E[S^2] of a lognormal service time of mean 1."""
    return exp(sigma**2)


def tail(size: int, sigma: float) -> float:
    """E[longest of `size`] / E[length] of independent lognormal lengths: the tail multiplier."""
    z = np.linspace(-12.0, 12.0 + sigma, 4001)
    longest = size * norm.pdf(z) * norm.cdf(z) ** (size - 1)
    return float(np.trapezoid(longest * np.exp(sigma * z - sigma**2 / 2), z))


def sigma_of_tail(size: int, wanted: float) -> float:
    """The lognormal sigma whose tail multiplier is `wanted`."""
    return float(brentq(lambda sigma: tail(size, sigma) - wanted, 0.01, 3.0))


def staleness(slots: int, batch: int, kept: float, ratio: float, multiplier: float) -> float:
    """Mean delay [updates] of a group, from its first response's start to the start of its update.

    `slots` and `batch` in responses, `kept`: finished mini-batches that are kept, `ratio`: generation's rate over the
    learner's, not 1. Applied Compute (2026-07-03): before the queue, then in it.
    """
    before = slots * multiplier / (batch * max(1.0, ratio))
    inside = ratio if ratio < 1 else (2 * kept + ratio - 1) / (2 * ratio)
    return before + inside


def whole_run_mean(n_updates: int, delay: int) -> float:
    """Mean of min(n, D) over a run of N updates, N > D."""
    return delay - delay * (delay + 1) / (2 * n_updates)
