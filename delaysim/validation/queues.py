"""Queues built of the clock: prompts come in at random, `workers` serve them, and the learner takes what is done."""

import numpy as np

from delaysim.clock.law import TICKS, Law
from delaysim.clock.lengths import KeyedLengths, Lognormal
from delaysim.clock.trace import Column, group_rows, run_alone
from delaysim.validation.intervals import BATCHES, Measured, batch_means
from delaysim.validation.services import EXPONENTIAL, UNIT, Service

AT_ONCE = 1 / TICKS
"""Cost of an update that is to cost nothing [units]."""
BATCH = 50
"""Groups of a mini-batch where nothing depends on it."""


def served(rate: float, servers: int, service: Service, customers: int) -> dict[str, Column]:
    """Rows of a queue with Poisson arrivals, mean service time 1 and one line."""
    law = Law(customers // BATCH, BATCH, None, 1.0, AT_ONCE, 1.0, UNIT, t_min=AT_ONCE, workers=servers, arrivals=rate)
    rows = group_rows(run_alone(law, KeyedLengths(service, 1, seed=0)).ledger)
    return {name: column[:customers] for name, column in rows.items()}


def wait(rate: float, servers: int, service: Service, customers: int) -> Measured:
    """Mean time from arrival to service, by order of arrival."""
    rows = served(rate, servers, service, customers)
    return batch_means(rows["launch"] - rows["submit"])


def repairs(machines: int, up: float, count: int) -> Measured:
    """Repairs per unit: one worker repairs, the reward lag is the time for which a machine runs."""
    law = Law(count, 1, machines - 1, 1.0, AT_ONCE, 1.0, UNIT, t_min=AT_ONCE, workers=1, reward_lag=up)
    clock = run_alone(law, KeyedLengths(EXPONENTIAL, 1, seed=0))
    done = group_rows(clock.ledger)["done"]
    edges = np.linspace(0.1 * clock.now, clock.now, BATCHES + 1) / TICKS
    per_unit = np.histogram(done[~np.isnan(done)], edges)[0] / np.diff(edges)
    return batch_means(per_unit, warm_up=0.0)


def little_of_queue(rate: float, servers: int) -> Measured:
    """Number in a queue and in service over throughput times residence."""
    rows = served(rate, servers, EXPONENTIAL, 20_000)
    return Measured(number_over_flow(rows["submit"], rows["done"]))


def little_of_run(eta: int) -> Measured:
    """Groups from launch to consumption over throughput times residence."""
    law = Law(2000, 8, eta, 85.0, 1.0, 1.0, 600.0)
    rows = group_rows(run_alone(law, KeyedLengths(Lognormal(600, 0.7, 0.5, 3072), 8, seed=0)).ledger)
    return Measured(number_over_flow(rows["launch"], rows["consumed"]))


def number_over_flow(start: Column, end: Column) -> float:
    """Mean number in the system over the middle of a run, against throughput times residence there (Little 1961).

    The first counts who is there, moment by moment; the second knows only those who leave.
    """
    left = np.sort(end[~np.isnan(end)])
    first, last = np.quantile(left, [0.2, 0.9])
    moments = np.unique(np.concatenate([start, left, [first, last]]))
    moments = moments[(moments >= first) & (moments <= last)]
    there = np.searchsorted(np.sort(start), moments, side="right") - np.searchsorted(left, moments, side="right")
    number = (there[:-1] * np.diff(moments)).sum()
    leaves = (end > first) & (end <= last)
    return float(number / (end - start)[leaves].sum())
