"""What holds generation back at each instant, what the learner does, and how full the system is: shares of sim time."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delaysim.clock.law import Law
from delaysim.clock.ledger import NEVER, IntArray
from delaysim.clock.ticks import of_rows
from delaysim.clock.trace import Column

HOLDS = ("look-ahead", "workers", "look-ahead and workers", "slots", "arrivals", "start", "nothing")
"""What can keep the next group from being launched. Of two at once neither, loosened alone, would let it through."""
LATER = int(np.iinfo(np.int64).max)


@dataclass(frozen=True)
class Account:
    """How one run spent its sim time, in ticks: `held` and `learner` add up to `end` exactly."""

    end: int
    """Tick at which the run ended."""
    held: Mapping[str, int]
    """By HOLDS."""
    learner: Mapping[str, int]
    """updating; syncing, weights that it may not go on without; waiting for groups."""
    filled: Mapping[str, float]
    """Groups in the system, mean over time: generating, scoring, ready. A mini-batch under way has left it."""


def account(rows: Mapping[str, Column], law: Law, poll: ArrayLike, publish: ArrayLike) -> Account:
    """The account of a finished run. `rows`: columns of `group_rows`; `poll`, `publish`: ticks by update."""
    polls, publishes = np.asarray(poll, np.int64), np.asarray(publish, np.int64)
    end = int(publishes[-1])
    return Account(end, _held(rows, law, publishes), _learner(law, polls, publishes), _filled(rows, end))


def _held(rows: Mapping[str, Column], law: Law, publish: IntArray) -> dict[str, int]:
    counted = {name: of_rows(rows, name, LATER) for name in ("launch", "dropped")}
    counted["returned"] = publish[rows["update"][rows["update"] != NEVER]]
    if law.workers is not None:
        counted["freed"] = np.minimum(of_rows(rows, "done", LATER), counted["dropped"])
    if law.arrivals is not None:
        counted["submit"] = of_rows(rows, "submit", LATER)
    flow = _Flow(counted, int(publish[-1]))
    full, busy = _at_look_ahead(flow, law), _at_workers(flow, law)
    empty = flow.count("submit") <= flow.count("launch") if law.arrivals is not None else np.zeros_like(full)
    rest = {"slots": law.slots is not None, "start": law.start == "ramp"}
    holds = {
        "arrivals": empty,
        "look-ahead and workers": full & busy,
        "look-ahead": full,
        "workers": busy,
        **{name: np.full_like(full, applies) for name, applies in rest.items()},
    }
    which = np.select(list(holds.values()), [HOLDS.index(name) for name in holds], HOLDS.index("nothing"))
    return {name: int(flow.width[which == index].sum()) for index, name in enumerate(HOLDS)}


def _at_look_ahead(flow: "_Flow", law: Law) -> NDArray[np.bool_]:
    """Whether launched - dropped - trained and published = (eta + 1) * B; a first replay may need more."""
    if law.look_ahead is None:
        return np.zeros(len(flow.width), bool)
    away = flow.count("launch") - flow.count("dropped") - flow.count("returned")
    return away >= (law.look_ahead + 1) * law.fresh


def _at_workers(flow: "_Flow", law: Law) -> NDArray[np.bool_]:
    if law.workers is None:
        return np.zeros(len(flow.width), bool)
    return flow.count("launch") - flow.count("freed") >= law.workers


class _Flow:
    """Running counts of events on the intervals between them."""

    def __init__(self, ticks: Mapping[str, IntArray], end: int) -> None:
        self._at = {name: np.unique(at[at < end], return_counts=True) for name, at in ticks.items()}
        self._start = np.unique(np.concatenate([[0], *(at for at, _ in self._at.values())]))
        self.width = np.diff(self._start, append=end)
        """Ticks of each interval."""

    def count(self, name: str) -> IntArray:
        """Events of a kind up to each interval."""
        at, many = self._at[name]
        return np.concatenate([[0], np.cumsum(many)])[np.searchsorted(at, self._start, side="right")]


def _learner(law: Law, poll: IntArray, publish: IntArray) -> dict[str, int]:
    updating = len(poll) * law.training_ticks
    syncing = int((publish - poll).sum()) - updating
    return {"updating": updating, "syncing": syncing, "waiting": int(publish[-1]) - updating - syncing}


def _filled(rows: Mapping[str, Column], end: int) -> dict[str, float]:
    left = np.minimum(of_rows(rows, "consumed", end), of_rows(rows, "dropped", end))
    place, filled = np.minimum(of_rows(rows, "launch", LATER), left), {}
    for name, until in (("generating", "done"), ("scoring", "ready"), ("ready", None)):
        after = left if until is None else np.minimum(of_rows(rows, until, LATER), left)
        filled[name] = float((after - place).sum(dtype=np.float64)) / end
        place = after
    return filled


def optimiser_steps(delay: ArrayLike, steps: int) -> tuple[float, int]:
    """Mean and largest delay counted in optimiser steps, `steps` of them on each mini-batch.

    A group that is `delay` updates old is steps * delay behind at the first step on it and steps - 1 more at the last:
    with several steps even delay 0 is off policy.
    """
    values = np.asarray(delay, np.float64)
    return float(values.mean()) * steps + (steps - 1) / 2, int(values.max()) * steps + steps - 1
