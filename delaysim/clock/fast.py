"""The fast engine: the reference's ledger, event for event, for the laws it knows. Imports numba on its first run."""

from array import array
from dataclasses import fields
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from delaysim.clock.law import Law
from delaysim.clock.ledger import NEVER, Ledger
from delaysim.clock.lengths import KeyedLengths
from delaysim.clock.loop import Clock
from delaysim.clock.trace import run_alone
from delaysim.errors import UserError

IntArray = NDArray[np.int64]
PER_GROUP, PER_UPDATE = ("version", "launch", "due", "update"), ("poll", "publish")
"""The ledger's columns that the compiled loop fills, in its order."""
ORDERS = ("completion", "submit", "version")
"""In the order of compiled.py."""
TABLE = 1 << 17
"""Whole sizes [tokens] below this are looked up in a table by size."""
REFERENCE = "SimPy, the reference"
"""The engine that runs every law."""


class Finished(NamedTuple):
    """What a clock that has run says, whichever engine ran it."""

    ledger: Ledger
    now: int
    """The last tick."""


def run_with(engine: str, law: Law, lengths: KeyedLengths, seed: int) -> tuple[Clock | Finished, str]:
    """Run the clock alone with the engine asked for, `simpy` or `fast`, and say which one ran. Raises `Stalled`."""
    if engine != "fast":
        return run_alone(law, lengths, seed), REFERENCE
    if unknown := unknown_setting(law):
        return run_alone(law, lengths, seed), f"{REFERENCE}: the fast one does not know clock.{unknown}"
    return run_fast(law, lengths), "fast"


def unknown_setting(law: Law) -> str | None:
    """The first setting of a law that the fast engine does not know, as the configuration names it."""
    names = ("noise", "abort_age", "timeout", "requeue", "zero_variance", "slots", "arrivals", "start", "reward_lag")
    defaults = {field.name: field.default for field in fields(Law)}
    other = [name for name in (*names, "replay") if getattr(law, name) != defaults[name]]
    other += ["order"] if law.order not in ORDERS else []
    other += ["sync_every" if law.sync_every > 1 else "sync_mode"] if law.lags else []
    other += ["eta=none"] if law.look_ahead is law.workers is None else []
    return next((name if "=" in name else f"{name}={str(getattr(law, name)).lower()}" for name in other), None)


def run_fast(law: Law, lengths: KeyedLengths, room: int | None = None) -> Finished:
    """`run_alone` by the compiled loop, for a law without an unknown setting.

    `room`: groups there is room for at first. Raises `Stalled`; UserError without numba.
    """
    compiled = _compiled()
    run = _Run(law, lengths, compiled)
    run.grow(room or (law.n_updates + (law.look_ahead or 0)) * law.groups_per_update)
    while (why := run.advance()) == compiled.NO_ROOM:
        run.grow(run.rest())
    if why == compiled.STALLED:
        run_alone(law, lengths)  # raises, and names what is missing
    return run.close()


def durations(law: Law, sizes: NDArray[Any]) -> IntArray:
    """`law.duration` [ticks] of groups of these sizes [tokens], asked once for each distinct size: so it is exact."""
    if len(sizes) == 0 or sizes.dtype.kind != "i" or sizes.max() >= TABLE:
        distinct, which = np.unique(sizes, return_inverse=True)
        return np.array([law.duration(size) for size in distinct.tolist()], np.int64)[which]
    distinct = np.flatnonzero(np.bincount(sizes))
    table = np.zeros(distinct[-1] + 1, np.int64)
    table[distinct] = [law.duration(size) for size in distinct.tolist()]
    return np.take(table, sizes)


class _Run:
    """The memory of one run: the ledger's own columns, and what the loop has beside them."""

    def __init__(self, law: Law, lengths: KeyedLengths, compiled: ModuleType) -> None:
        self._law, self._lengths, self._compiled = law, lengths, compiled
        self.ledger, self._state, self._limits = Ledger(), compiled.start(), _limits(law)
        self._generating = np.empty((2, min(self._limits[2:4])), np.int64)
        self._ticks, self._completed = np.empty(0, np.int64), np.empty(0, np.int64)
        self._heap, self._dropped = (np.empty(0, np.int64), np.empty(0, np.int64)), np.empty((0, 3), np.int64)
        _extend(self.ledger, PER_UPDATE, law.n_updates)

    def rest(self) -> int:
        """Groups to make room for: at the rate so far the rest of the run launches about as many."""
        updates, launched = int(self._state[self._compiled.VERSION]), len(self.ledger)
        rest = (self._law.n_updates - updates) * launched // max(updates, 1)
        return min(launched, rest + launched // 32 + 1)

    def grow(self, count: int) -> None:
        """Make room for so many groups more, and find their durations."""
        first, c = len(self.ledger), self._compiled
        tail, heaped, dropped = self._state[[c.TAIL, c.HEAPED, c.DROPPED]]
        _extend(self.ledger, PER_GROUP, count)
        more = self._durations(range(first, first + count))
        self._ticks = np.concatenate([self._ticks, more]) if first else more
        self._completed = _longer(self._completed, tail, count)
        self._heap = _longer(self._heap[0], heaped, count), _longer(self._heap[1], heaped, count)
        self._dropped = _longer(self._dropped, dropped, count)

    def advance(self) -> int:
        """Let the loop go on; why it returned."""
        columns = tuple(np.frombuffer(getattr(self.ledger, name), np.int64) for name in (*PER_GROUP, *PER_UPDATE))
        ready, generating = (self._completed, *self._heap), tuple(self._generating)
        why: int = self._compiled.advance(
            self._state, self._limits, self._ticks, columns, generating, ready, self._dropped
        )
        return why

    def close(self) -> Finished:
        """Give back the room that was not used, and write down what was dropped."""
        launched, dropped, now = self._state[[self._compiled.LAUNCHED, self._compiled.DROPPED, self._compiled.NOW]]
        for name in PER_GROUP:
            del getattr(self.ledger, name)[launched:]
        self.ledger.drops = self._dropped[:dropped].copy()
        return Finished(self.ledger, int(now))

    def _durations(self, groups: range) -> IntArray:
        if not self._law.lam:
            return np.full(len(groups), self._law.duration(0))
        return durations(self._law, self._lengths.sizes(groups))


def _limits(law: Law) -> tuple[int, ...]:
    """In the order of compiled.py."""
    far, b = 1 << 62, law.groups_per_update
    in_system = far if law.look_ahead is None else (law.look_ahead + 1) * b
    slots = far if law.workers is None else law.workers
    kept = far if law.queue_limit is None else law.queue_limit
    age = far if law.age_max is None else law.age_max
    return law.n_updates, b, in_system, slots, law.update_ticks(0), ORDERS.index(law.order), kept, age


def _extend(ledger: Ledger, names: tuple[str, ...], count: int) -> None:
    for name in names:
        column, more = getattr(ledger, name), array("q", [NEVER]) * count
        if column:
            column.extend(more)
        else:
            setattr(ledger, name, more)


def _longer(column: IntArray, used: int, count: int) -> IntArray:
    """With room for `count` more rows; memory that is never written costs nothing."""
    longer = np.empty((len(column) + count, *column.shape[1:]), np.int64)
    longer[:used] = column[:used]
    return longer


def _compiled() -> ModuleType:
    """The compiled loop. Raises UserError where numba is missing or does not fit."""
    try:
        return import_module("delaysim.clock.compiled")
    except ImportError as error:
        raise UserError(
            f"clock=fast needs numba: pip install 'delaysim[fast]', or use clock=simpy for the same trace ({error})"
        ) from error
