"""The record as a trace for Perfetto and chrome://tracing: a slot of generation, the learner, a count on each track.

Source: the Trace Event Format, JSON object form. One simulated unit is shown as one millisecond, so a tick of the clock
is a nanosecond, the finest time that Perfetto keeps: nothing is rounded.
"""

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delaysim.analysis.timeline.record import Record, Ticks
from delaysim.analysis.timeline.slots import level
from delaysim.analysis.timeline.window import Window
from delaysim.clock import TICKS
from delaysim.clock.ledger import NEVER
from delaysim.files import replacing

Event = dict[str, Any]
TICKS_OF_MICROSECOND = 1000
LEARNER, GENERATION, COUNTS = 1, 2, 3
"""Process ids."""
UPDATES, PUBLISHES, SYNCS, DROPS, SLOTS = 11, 12, 13, 14, 101
"""Thread ids, that of slot 0 last; none equals a process id, which viewers take for its main thread."""


def write_perfetto(record: Record, window: Window, path: Path) -> None:
    """Write what overlaps the window, event by event; gzipped where the name ends in .gz."""
    head = {"run": record.name, "one millisecond is": "one simulated unit", "window": list(window.units)}
    with replacing(path) as file:
        if path.suffix == ".gz":
            with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
                _write(packed, head, events(record, window))
        else:
            _write(file, head, events(record, window))


def _write(file: Any, head: Event, found: Iterable[Event]) -> None:
    file.write(f'{{"displayTimeUnit":"ms","otherData":{_json(head)},"traceEvents":[\n'.encode())
    for number, event in enumerate(found):
        file.write((",\n" if number else "").encode() + _json(event).encode())
    file.write(b"\n]}\n")


def _json(value: Event) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def events(record: Record, window: Window) -> Iterator[Event]:
    """Names of the tracks, slices of updates and groups, publishes, syncs and drops, counts.

    Slices that reach beyond the window are whole.
    """
    groups = window.overlapping(record.groups["launch"], record.until)
    updates = window.overlapping(record.learner_free, record.publish)
    yield from _names(record, groups)
    for update in updates.tolist():
        yield from _update(record, update)
    for group in groups.tolist():
        yield _group(record, group)
    yield from _syncs(record, window)
    yield from _drops(record, window)
    yield from _counts(record, window)


def _names(record: Record, groups: Ticks) -> Iterator[Event]:
    slots = int(record.slot.max()) + 1
    processes = {LEARNER: "learner", GENERATION: f"generation ({slots} slots)", COUNTS: "counts"}
    for process, name in processes.items():
        yield _named("process_name", process, name=name)
        yield _named("process_sort_index", process, sort_index=process)
    threads = [(LEARNER, UPDATES, "updates"), (LEARNER, PUBLISHES, "publishes")]
    if record.syncs:
        threads.append((LEARNER, SYNCS, "syncs"))
    if (record.groups["dropped"] != NEVER).any():
        threads.append((LEARNER, DROPS, "drops"))
    used = np.unique(record.slot[groups]).tolist()
    for process, thread, name in [*threads, *((GENERATION, SLOTS + slot, f"slot {slot}") for slot in used)]:
        yield _named("thread_name", process, thread, name=name)
        yield _named("thread_sort_index", process, thread, sort_index=thread)


def _time(ticks: int) -> float:
    """In the format's microseconds."""
    return ticks / TICKS_OF_MICROSECOND


def _named(what: str, process: int, thread: int = 0, **args: Any) -> Event:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": args}


def _slice(name: str, kind: str, track: tuple[int, int], start: int, end: int, args: Event) -> Event:
    process, thread = track
    where = {"pid": process, "tid": thread, "ts": _time(start), "dur": _time(end - start)}
    return {"name": name, "cat": kind, "ph": "X", **where, "args": args}


def _instant(name: str, kind: str, thread: int, at: int, args: Event) -> Event:
    return {
        "name": name,
        "cat": kind,
        "ph": "i",
        "s": "t",
        "pid": LEARNER,
        "tid": thread,
        "ts": _time(at),
        "args": args,
    }


def _update(record: Record, update: int) -> Iterator[Event]:
    """The wait before it, the update, what it takes beyond that to be published; the publish itself."""
    track = (LEARNER, UPDATES)
    poll, end, publish = (int(x[update]) for x in (record.poll, record.trained_until, record.publish))
    idle = int(record.learner_free[update])
    if idle < poll:
        yield _slice("wait", "wait", track, idle, poll, {"for_update": update})
    members = record.members[update]
    delay = record.groups["delay"][members]
    args = {
        "update": update,
        **{f"delay_{name}": getattr(delay, name)().item() for name in ("mean", "min", "max") if len(delay)},
        "groups": members.tolist(),
    }
    yield _slice(f"update {update}", "update", track, poll, end, args)
    if end < publish:
        yield _slice("sync", "sync", track, end, publish, {"version": update + 1})
    yield _instant(f"version {update + 1}", "publish", PUBLISHES, publish, {"version": update + 1})


def _group(record: Record, group: int) -> Event:
    of, fate = record.groups, str(record.fate[group])
    args = {"group": group, **{name: int(of[name][group]) for name in ("prompt", "attempt", "version")}, "fate": fate}
    if of["update"][group] != NEVER:
        args |= {name: int(of[name][group]) for name in ("update", "delay", "pre_queue", "in_queue")}
    if (lengths := record.lengths[group])[0] != NEVER:
        args["lengths"] = lengths.tolist()
    name = f"group {group}" + ("" if fate == "trained" else f" ({fate})")
    track = (GENERATION, SLOTS + int(record.slot[group]))
    return _slice(name, fate, track, int(of["launch"][group]), int(record.until[group]), args)


def _syncs(record: Record, window: Window) -> Iterator[Event]:
    for start, end, version in record.syncs:
        if start < window.end and end > window.start:
            yield _slice(f"sync of version {version}", "sync", (LEARNER, SYNCS), start, end, {"version": version})


def _drops(record: Record, window: Window) -> Iterator[Event]:
    dropped = record.groups["dropped"]
    for group in np.flatnonzero(window.holds(dropped)).tolist():
        fate, age = str(record.fate[group]), int(dropped[group] - record.groups["launch"][group])
        args = {"group": group, "version": int(record.groups["version"][group]), "after": age / TICKS}
        yield _instant(f"drop ({fate})", fate, DROPS, int(dropped[group]), args)


def counts(record: Record) -> dict[tuple[str, str], tuple[Ticks, NDArray[Any]]]:
    """Name and of what; ticks at which a count changes and its value from there on.

    look-ahead used: mini-batches launched and neither published nor dropped, beyond the one the learner needs next.
    """
    of = record.groups
    out = np.where(record.trained, record.publish[of["update"]], of["dropped"])
    at, groups = level((of["launch"], 1), (out, -1))
    return {
        ("in generation", "groups"): level((of["launch"], 1), (record.left, -1)),
        ("ready queue", "groups"): level((of["ready"], 1), (record.taken, -1)),
        ("look-ahead used", "updates"): (at, groups / record.law.fresh - 1),
    }


def _counts(record: Record, window: Window) -> Iterator[Event]:
    for (name, of), (ticks, values) in counts(record).items():
        first = max(int(np.searchsorted(ticks, window.start, side="right")) - 1, 0)
        last = int(np.searchsorted(ticks, window.end, side="right"))
        for tick, value in zip(ticks[first:last].tolist(), values[first:last].tolist(), strict=True):
            at = _time(max(tick, window.start))
            yield {"name": name, "ph": "C", "pid": COUNTS, "tid": COUNTS, "ts": at, "args": {of: value}}
