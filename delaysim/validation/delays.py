"""The delay itself against what the rules imply: caps, fixed delays, Poisson arrivals, published worked rows."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from delaysim.clock.law import Law
from delaysim.clock.ledger import NEVER
from delaysim.clock.lengths import KeyedLengths, LengthLaw, Lognormal
from delaysim.clock.pilot import balanced_look_ahead
from delaysim.clock.trace import Column, group_rows, run_alone
from delaysim.validation.formulas import sigma_of_tail
from delaysim.validation.intervals import Measured, batch_means
from delaysim.validation.services import UNIT, lognormal

HEAVY = Lognormal(600, 0.7, 0.5, 3072)
"""The default lengths of a trace."""
COUPLED = Law(1, 8, 0, 85.0, 1.0, 1.0, 600.0)
"""The clock of the paper; the number of updates and the look-ahead are set by each check."""
GROUP = 8
"""G."""


class Pipeline(NamedTuple):
    """A row of the published staleness formula; counts are of responses."""

    slots: int
    batch: int
    kept: int
    """Finished mini-batches that are kept."""
    ratio: float
    """Rate of generation over that of the learner."""
    tail: float
    """E[longest of a group] / E[length]."""


def rows_of(law: Law, lengths: LengthLaw = HEAVY, group_size: int = GROUP) -> dict[str, Column]:
    """Rows of a run."""
    return group_rows(run_alone(law, KeyedLengths(lengths, group_size, seed=0)).ledger)


def by_update(rows: dict[str, Column], first: int = 0) -> Column:
    """Mean delay of the groups of every update from `first` on."""
    trained = rows["update"] != NEVER
    update, delay = rows["update"][trained], rows["delay"][trained]
    means: Column = np.bincount(update, delay) / np.bincount(update)
    return means[first:]


def capped(eta: int, order: str, updates: int) -> Measured:
    """Mean delay in the steady state while admission binds."""
    law = replace(COUPLED, n_updates=updates, look_ahead=eta, order=order)
    return batch_means(by_update(rows_of(law), law.steady_from), warm_up=0.0)


def fixed(delay: int, updates: int) -> Measured:
    """Mean delay of a whole run with equal durations."""
    return Measured(float(by_update(rows_of(replace(COUPLED, n_updates=updates, look_ahead=delay, lam=0.0))).mean()))


def uncoupled(updates: int) -> Measured:
    """Of all delays in the steady state without coupling, the one that is farthest from C_gen / C_update."""
    law = replace(COUPLED, n_updates=updates, lam=0.0)
    law = replace(law, look_ahead=balanced_look_ahead(law))
    rows = rows_of(law)
    steady = rows["delay"][rows["update"] >= law.steady_from]
    ratio = law.c_gen / law.c_update
    return Measured(float(steady[np.abs(steady - ratio).argmax()]))


def poisson_front(rate: float, updates: int) -> Measured:
    """Mean delay with prompts that come in at random and are all generated at once, one response each."""
    law = replace(COUPLED, n_updates=updates, look_ahead=None, arrivals=rate, l_ref=float(UNIT))
    return batch_means(by_update(rows_of(law, lognormal(0.7), 1)), warm_up=0.2)


def pipeline(row: Pipeline, updates: int) -> Measured:
    """Mean delay of a pipeline whose slots are always full and whose queue keeps the newest mini-batches.

    A response takes one unit on average, so that generation makes `slots` per unit and an update takes
    ratio * batch / slots.
    """
    update = row.ratio * row.batch / row.slots
    law = Law(updates, row.batch // GROUP, None, 1.0, update, 0.0, UNIT, slots=row.slots)
    law = replace(law, group_size=GROUP, queue_drop=float(row.kept))
    return batch_means(by_update(rows_of(law, lognormal(sigma_of_tail(GROUP, row.tail)))), warm_up=0.2)
