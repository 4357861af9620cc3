"""The event loop as numba compiles it: the rules of loop.py on arrays of integers.

The helpers take bare arrays, and LLVM inlines them: inlined by numba they would count a reference to each array at
every event, and a call, or an array inside a tuple, costs more than a step in a heap.
Nothing but arrays and integers goes in: numba's cache on disk pickles the types of the arguments, and a class that is
renamed would leave it unreadable.
"""

from collections.abc import Callable
from typing import TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

from delaysim.clock.ledger import AGE, QUEUE
from delaysim.clock.loop import STARVED

IntArray = NDArray[np.int64]
Limits = tuple[int, ...]
Function = TypeVar("Function", bound=Callable[..., int])

NOW, VERSION, LAUNCHED, GENERATING, HEAD, TAIL, READY, HEAPED, DROPPED, IN_VAIN, OLDEST, PUBLISH, ADMIT = range(13)
"""Places in the state. HEAD to TAIL of the completions is where those stand that are ready, among gaps. OLDEST: no
ready group has weights before it."""
UPDATES, BATCH, IN_SYSTEM, SLOTS, UPDATE_TICKS, ORDER, KEPT, AGE_MAX = range(8)
"""Places in the limits: N; B; groups launched and not given back, at most; groups in generation, at most; ticks of an
update; one of ORDERS; groups ready, at most; age."""
ORDERS = COMPLETION, SUBMIT, VERSION_FIRST = range(3)
FAR = np.int64(2**62)
"""No limit; and the tick of the next publish while the learner waits."""
GAP = -1
"""In place of a completed group that was taken or dropped."""
ROOT, ONE = np.uint64(0), np.uint64(1)
"""For places in a heap: where numba cannot tell that an index is not negative, it asks at every access."""
FINISHED, NO_ROOM, STALLED = range(3)
"""Why `advance` returned: the run is over; more groups are to be launched than there is room for; nothing can end the
learner's wait."""


def start() -> IntArray:
    """The state at tick 0: nothing launched, the learner waits."""
    state = np.zeros(13, np.int64)
    state[PUBLISH], state[OLDEST], state[ADMIT] = FAR, FAR, 1
    return state


@njit(forceinline=True)
def _rise(key: IntArray, entry: IntArray, place: np.uint64, new_key: int, new: int) -> None:
    """Put an entry into a binary heap, at or above a place that is free."""
    while place > ROOT:
        above = (place - ONE) >> ONE
        if key[above] < new_key or (key[above] == new_key and entry[above] < new):
            break
        key[place], entry[place] = key[above], entry[above]
        place = above
    key[place], entry[place] = new_key, new


@njit(forceinline=True)
def _pop(key: IntArray, entry: IntArray, last: np.uint64) -> int:
    """Take the first of `last` + 1 entries; the hole sinks to a leaf, and no branch but for equal keys on the way."""
    place, below = ROOT, ONE
    first: int = entry[ROOT]
    while below + ONE < last:
        left, right = key[below], key[below + ONE]
        smaller = right < left
        if right == left:
            smaller = entry[below + ONE] < entry[below]
        below += np.uint64(smaller)
        key[place], entry[place] = key[below], entry[below]
        place, below = below, below + below + ONE
    if below < last:
        key[place], entry[place] = key[below], entry[below]
        place = below
    _rise(key, entry, place, key[last], entry[last])
    return first


@njit(forceinline=True)
def _admit(
    state: IntArray,
    limits: Limits,
    ticks: IntArray,
    version: IntArray,
    launch: IntArray,
    due: IntArray,
    tick: IntArray,
    group: IntArray,
) -> None:
    """Launch what is admissible, all of it or nothing."""
    given_back = state[VERSION] * limits[BATCH] + state[DROPPED]
    free = min(limits[IN_SYSTEM] + given_back - state[LAUNCHED], limits[SLOTS] - state[GENERATING])
    if state[LAUNCHED] + free > len(ticks):
        return
    now, first, running = state[NOW], state[LAUNCHED], state[GENERATING]
    for new in range(first, first + free):
        ends = now + ticks[new]
        version[new], launch[new], due[new] = state[VERSION], now, ends
        _rise(tick, group, np.uint64(running + new - first), ends, new)
    state[LAUNCHED] += max(free, 0)
    state[GENERATING] += max(free, 0)
    state[ADMIT] = 0


@njit(forceinline=True)
def _drop(state: IntArray, done: IntArray, dropped: IntArray, place: int, fate: int) -> None:
    """Drop the ready group that stands at this place of the completions."""
    entry = state[DROPPED]
    dropped[entry, 0], dropped[entry, 1], dropped[entry, 2] = done[place], fate, state[NOW]
    done[place] = GAP
    state[READY] -= 1
    state[DROPPED] += 1
    state[IN_VAIN] += state[PUBLISH] == FAR
    state[ADMIT] = 1


@njit(forceinline=True)
def _first(state: IntArray, done: IntArray) -> int:
    """Place of the oldest completion that is still ready; there must be one."""
    place: int = state[HEAD]
    while done[place] == GAP:
        place += 1
    state[HEAD] = place
    return place


@njit(forceinline=True)
def _complete(
    state: IntArray,
    limits: Limits,
    version: IntArray,
    tick: IntArray,
    group: IntArray,
    done: IntArray,
    key: IntArray,
    entry: IntArray,
    dropped: IntArray,
) -> None:
    """What ends at this tick."""
    while state[GENERATING] > 0 and tick[0] == state[NOW]:
        state[GENERATING] -= 1
        new = _pop(tick, group, np.uint64(state[GENERATING]))
        done[state[TAIL]] = new
        if limits[AGE_MAX] != FAR:
            state[OLDEST] = min(state[OLDEST], version[new])
        if limits[ORDER] != COMPLETION:
            _rise(key, entry, np.uint64(state[HEAPED]), new if limits[ORDER] == SUBMIT else version[new], state[TAIL])
            state[HEAPED] += 1
        state[TAIL] += 1
        state[READY] += 1
        if state[READY] > limits[KEPT]:
            _drop(state, done, dropped, _first(state, done), QUEUE)
        state[ADMIT] = 1


@njit(forceinline=True)
def _drop_old(state: IntArray, limits: Limits, version: IntArray, done: IntArray, dropped: IntArray) -> None:
    """Drop what is older than the learner takes."""
    limit, oldest = state[VERSION] - limits[AGE_MAX], FAR
    if state[OLDEST] < limit:
        _first(state, done)
        for place in range(state[HEAD], state[TAIL]):
            if done[place] != GAP:
                if version[done[place]] < limit:
                    _drop(state, done, dropped, place, AGE)
                else:
                    oldest = min(oldest, version[done[place]])
        state[OLDEST] = oldest


@njit(forceinline=True)
def _take(state: IntArray, limits: Limits, done: IntArray, key: IntArray, entry: IntArray) -> int:
    """The group that is first by the order."""
    place = GAP
    if limits[ORDER] == COMPLETION:
        place = _first(state, done)
    while place == GAP or done[place] == GAP:
        state[HEAPED] -= 1
        place = _pop(key, entry, np.uint64(state[HEAPED]))
    group: int = done[place]
    done[place] = GAP
    state[READY] -= 1
    return group


@njit(forceinline=True)
def _decide(
    state: IntArray,
    limits: Limits,
    update: IntArray,
    poll: IntArray,
    done: IntArray,
    key: IntArray,
    entry: IntArray,
) -> None:
    poll[state[VERSION]] = state[NOW]
    for _ in range(limits[BATCH]):
        update[_take(state, limits, done, key, entry)] = state[VERSION]
    state[PUBLISH] = state[NOW] + limits[UPDATE_TICKS]
    state[IN_VAIN] = 0


@njit(forceinline=True)
def _publish(state: IntArray, publish: IntArray) -> None:
    publish[state[VERSION]] = state[NOW]
    state[VERSION] += 1
    state[PUBLISH], state[ADMIT] = FAR, 1


def _kept(function: Function) -> Function:
    """Compile on the first call and keep the code: beside this file, else in the user's cache, else nowhere."""
    try:
        return cast(Function, njit(cache=True)(function))
    except RuntimeError:  # numba may write in neither
        return cast(Function, njit(function))


@_kept
def advance(
    state: IntArray,
    limits: Limits,
    ticks: IntArray,
    columns: tuple[IntArray, ...],
    generating: tuple[IntArray, IntArray],
    ready: tuple[IntArray, IntArray, IntArray],
    dropped: IntArray,
) -> int:
    """Fire events in the normative order until the run is over or cannot go on; call again to go on.

    `ticks`: durations of the groups by id. `columns`: the ledger's. `generating`: a heap of (tick, group). `ready`:
    groups in the order of completion, and a heap of (key, place among them) for the other orders. `dropped`:
    [groups, 3], rows of (group, fate, tick).
    """
    version, launch, due, update, poll, publish = columns
    tick, group = generating
    done, key, entry = ready
    while state[IN_VAIN] <= STARVED:
        if state[PUBLISH] == state[NOW]:
            _publish(state, publish)
            if state[VERSION] == limits[UPDATES]:
                return FINISHED
        _complete(state, limits, version, tick, group, done, key, entry, dropped)
        if state[ADMIT]:
            _admit(state, limits, ticks, version, launch, due, tick, group)
            if state[ADMIT]:
                return NO_ROOM
        elif state[PUBLISH] == FAR and state[READY] >= limits[BATCH]:
            _drop_old(state, limits, version, done, dropped)
            if state[READY] >= limits[BATCH] and state[IN_VAIN] <= STARVED:
                _decide(state, limits, update, poll, done, key, entry)
        else:
            state[NOW] = state[PUBLISH]
            if state[GENERATING] > 0:
                state[NOW] = min(state[NOW], tick[0])
            if state[NOW] == FAR:
                return STALLED
    return STALLED
