"""Slots and levels: the clock counts groups in generation, a picture gives each a place; and any count over time."""

import heapq

import numpy as np
from numpy.typing import NDArray

from delaysim.clock.ledger import NEVER

Ticks = NDArray[np.int64]


def colour(launch: Ticks, until: Ticks) -> Ticks:
    """The lowest slot free at each launch, for intervals [launch, until); NEVER for one that was not launched.

    A slot whose interval ends at a tick is free at that tick. Greedy in order of start, so as few slots as intervals
    ever overlap.
    """
    found = np.full(len(launch), NEVER, np.int64)
    order = np.argsort(launch, kind="stable")
    order = order[launch[order] != NEVER]
    busy: list[tuple[int, int]] = []
    free: list[int] = []
    slots = 0
    for group, start, end in zip(order.tolist(), launch[order].tolist(), until[order].tolist(), strict=True):
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        slot = heapq.heappop(free) if free else slots
        slots = max(slots, slot + 1)
        found[group] = slot
        heapq.heappush(busy, (end, slot))
    return found


def level(*changes: tuple[Ticks, int]) -> tuple[Ticks, Ticks]:
    """Ticks at which a count changes and its value from there on; it begins at 0.

    Each change is (ticks, amount), NEVER among the ticks for none; what cancels at one tick leaves no trace.
    """
    ticks = np.concatenate([at[at != NEVER] for at, _ in changes])
    amounts = np.concatenate([np.full((at != NEVER).sum(), amount) for at, amount in changes])
    at, where = np.unique(ticks, return_inverse=True)
    net = np.bincount(where, weights=amounts, minlength=len(at)).astype(np.int64)
    return at[net != 0], np.cumsum(net[net != 0])
