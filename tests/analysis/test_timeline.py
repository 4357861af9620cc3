"""The clock's record as a trace for Perfetto: the worked example by hand, and invariants over random laws."""

import gzip
import json
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from clock.cases import LENGTHS, WORKED_LAW, WORKED_LENGTHS, laws
from clocked import POLICIES, busy, clocked, write_clocked
from hypothesis import given, settings
from hypothesis import strategies as st

from delaysim.analysis.timeline.perfetto import (
    DROPS,
    GENERATION,
    LEARNER,
    PUBLISHES,
    SLOTS,
    UPDATES,
    counts,
    events,
    write_perfetto,
)
from delaysim.analysis.timeline.record import read_record
from delaysim.analysis.timeline.slots import colour, level
from delaysim.analysis.timeline.window import Window, held, whole
from delaysim.clock import TICKS, Law

UNIT, MS = TICKS, 1000.0
"""A unit in ticks, and in the microseconds of the format."""
INTERVALS = st.lists(st.tuples(st.integers(-1, 12), st.integers(0, 6)), max_size=40)


def slices(found):
    """(pid, tid) to its slices as (name, start, end), in order of start."""
    tracks = defaultdict(list)
    for event in found:
        if event["ph"] == "X":
            start, length = nanoseconds(event["ts"]), nanoseconds(event["dur"])
            tracks[event["pid"], event["tid"]].append((event["name"], start, start + length))
    return {track: sorted(of, key=lambda s: (s[1], s[2])) for track, of in tracks.items()}


def nanoseconds(time):
    """As a viewer reads a time; each is a tick."""
    assert round(time * 1000) / 1000 == time
    return round(time * 1000)


def at_once(launch, until):
    """Most intervals [launch, until) that hold one instant."""
    return max((((launch <= t) & (t < until) & (launch >= 0)).sum() for t in launch), default=0)


@settings(max_examples=100, deadline=None)
@given(INTERVALS)
def test_each_group_has_the_lowest_slot_free_at_its_launch(drawn):
    launch = np.array([start for start, _ in drawn], np.int64)
    until = launch + np.array([length for _, length in drawn], np.int64)
    slot = colour(launch, until)
    taken = defaultdict(lambda: -1)
    for group in sorted(range(len(drawn)), key=lambda g: launch[g]):
        if launch[group] < 0:
            assert slot[group] == -1
            continue
        free = next(s for s in range(len(drawn)) if taken[s] <= launch[group])
        assert slot[group] == free
        taken[free] = until[group]
    longer = until > launch
    if (longer & (launch >= 0)).any():
        assert slot[longer].max() + 1 <= at_once(launch[longer], until[longer])


@settings(max_examples=100, deadline=None)
@given(INTERVALS)
def test_a_level_is_the_number_of_intervals_at_every_tick(drawn):
    up = np.array([start for start, _ in drawn], np.int64)
    down = np.where(up >= 0, up + np.array([length for _, length in drawn], np.int64), -1)
    ticks, values = level((up, 1), (down, -1))
    for tick in range(20):
        before = np.searchsorted(ticks, tick, side="right")
        inside = ((up >= 0) & (up <= tick) & (down > tick)).sum()
        assert (values[before - 1] if before else 0) == inside
    assert (np.diff(ticks) > 0).all()
    assert (np.diff(np.append(0, values)) != 0).all()


def test_the_worked_example_by_hand():
    """The table of clock.md section 2: groups 4 to 9 take the lowest of the slots that groups 0 to 3 have left."""
    found = list(events(*pair(clocked(WORKED_LAW, WORKED_LENGTHS)[0])))
    tracks = slices(found)
    expected = {
        0: [("group 0", 0, 6), ("group 6 (never)", 8, 16)],
        1: [("group 1", 0, 2), ("group 4", 5, 7), ("group 7", 8, 10), ("group 8", 11, 15)],
        2: [("group 2", 0, 4), ("group 5", 5, 9), ("group 9 (never)", 11, 15)],
        3: [("group 3", 0, 10)],
    }
    assert {slot: in_units(tracks.pop((GENERATION, SLOTS + slot))) for slot in range(4)} == expected
    assert in_units(tracks.pop((LEARNER, UPDATES))) == [
        ("wait", 0, 4), ("update 0", 4, 5), ("wait", 5, 7), ("update 1", 7, 8), ("wait", 8, 10), ("update 2", 10, 11),
        ("wait", 11, 15), ("update 3", 15, 16),
    ]  # fmt: skip
    assert not tracks
    published = [(e["name"], e["ts"] / MS) for e in found if e["ph"] == "i" and e["tid"] == PUBLISHES]
    assert published == [("version 1", 5), ("version 2", 8), ("version 3", 11), ("version 4", 16)]
    second = next(e["args"] for e in found if e["name"] == "update 2")
    assert second == {"update": 2, "delay_mean": 1.5, "delay_min": 1, "delay_max": 2, "groups": [3, 5]}
    group = next(e["args"] for e in found if e["name"] == "group 3")
    assert group == {"group": 3, "prompt": 3, "attempt": 0, "version": 0, "fate": "trained", "update": 2, "delay": 2,
                     "pre_queue": 2, "in_queue": 0, "lengths": [5]}  # fmt: skip


def test_the_worked_examples_counts_by_hand():
    record = clocked(WORKED_LAW, WORKED_LENGTHS)[0]
    found = {name: (list(at / UNIT), list(value)) for name, (at, value) in counts(record).items()}
    assert found == {
        ("in generation", "groups"): ([0, 2, 4, 5, 6, 7, 8, 9, 10, 11, 15], [4, 3, 2, 4, 3, 2, 4, 3, 1, 3, 1]),
        ("ready queue", "groups"): ([2, 4, 6, 7, 9], [1, 0, 1, 0, 1]),
        ("look-ahead used", "updates"): ([0, 16], [1, 0]),
    }


def pair(record):
    return record, whole(record)


def in_units(of):
    return [(name, start / UNIT, end / UNIT) for name, start, end in of]


@settings(max_examples=40, deadline=None)
@given(laws(), LENGTHS, POLICIES)
def test_a_trace_agrees_with_the_clock(law, longest, policies):
    record, rows = clocked(replace(law, **policies), longest)
    found = list(events(*pair(record)))
    tracks = slices(found)
    for of in tracks.values():
        assert all(end <= start for (_, _, end), (_, start, _) in pairwise(of))
    generation = {track: of for track, of in tracks.items() if track[0] == GENERATION}
    assert len(generation) <= max(1, at_once(record.groups["launch"], record.until))
    assert law.workers is None or len(generation) <= law.workers
    spent = sum(end - start for of in generation.values() for _, start, end in of)
    assert spent == (record.until - record.groups["launch"]).sum()
    learner = tracks[LEARNER, UPDATES]
    assert sum(end - start for _, start, end in learner) == record.stop
    trained = sum(end - start for name, start, end in learner if name.startswith("update"))
    assert trained / record.stop == pytest.approx(busy(record, rows), rel=1e-6)
    ends = {name: value[-1] for name, (_, value) in counts(record).items() if len(value)}
    never = record.fate == "never"
    assert ends.get(("in generation", "groups"), 0) == (never & (record.groups["done"] < 0)).sum()
    assert ends.get(("ready queue", "groups"), 0) == (never & (record.groups["ready"] >= 0)).sum()
    assert ends[("look-ahead used", "updates")] == pytest.approx(never.sum() / law.groups_per_update - 1)
    assert all((values >= 0).all() for (_, of), (_, values) in counts(record).items() if of == "groups")
    assert counts(record)[("look-ahead used", "updates")][1].max() <= law.look_ahead


@settings(max_examples=40, deadline=None)
@given(laws(), LENGTHS, st.sampled_from([0.25, 1.0, 2.5]), st.integers(1, 3))
def test_groups_are_launched_with_the_weights_that_the_last_sync_brought(law, longest, time, every):
    law = replace(law, sync_time=time, sync_mode="background", sync_every=every)
    record = clocked(law, longest)[0]
    arrived = [(0, 0), *((end, version) for _, end, version in record.syncs)]
    assert all(start >= end for (_, end, _), (start, _, _) in pairwise(record.syncs))
    for launch, version in zip(record.groups["launch"].tolist(), record.groups["version"].tolist(), strict=True):
        assert version == [v for end, v in arrived if end <= launch][-1]


NEEDED = {"M": set(), "C": {"ts"}, "X": {"ts", "cat", "dur"}, "i": {"ts", "cat", "s"}}


@pytest.mark.parametrize("packed", [False, True])
def test_a_written_trace_is_read_back(tmp_path, packed):
    """The Trace Event Format's fields, every time a tick, every track named once."""
    record, rows = clocked(Law(9, 2, 3, 7.3, 0.3, 1.5, 2.0), [1, 5, 2, 9, 3, 3, 7])
    write_clocked(tmp_path, record, rows)
    path = tmp_path / ("t.json.gz" if packed else "t.json")
    write_perfetto(read_record(tmp_path), whole(record), path)
    value = json.loads(gzip.decompress(path.read_bytes()) if packed else path.read_bytes())
    assert value["displayTimeUnit"] == "ms"
    found = value["traceEvents"]
    assert found == json.loads(json.dumps(list(events(*pair(record)))))
    for event in found:
        assert set(event) == NEEDED[event["ph"]] | {"ph", "pid", "tid", "name", "args"}
        assert all(event[key] >= 0 and nanoseconds(event[key]) >= 0 for key in ("ts", "dur") if key in event)
    names = [(e["pid"], e["tid"]) for e in found if e["name"] == "thread_name"]
    assert len(names) == len(set(names))
    assert {(e["pid"], e["tid"]) for e in found if e["ph"] in "Xi"} == set(names)
    assert not {tid for _, tid in names} & {LEARNER, GENERATION}


@settings(max_examples=30, deadline=None)
@given(laws(), LENGTHS, st.floats(0, 0.9), st.floats(0.05, 1))
def test_a_window_has_what_overlaps_it_and_the_counts_at_its_start(law, longest, share, width):
    record = clocked(law, longest)[0]
    low = int(share * record.stop)
    window = Window(low, low + max(1, int(width * (record.stop - low))))
    found = list(events(record, window))
    shown = {e["args"]["group"] for e in found if e["ph"] == "X" and e["pid"] == GENERATION}
    begin, end = record.groups["launch"], record.until
    lasting = end > begin
    inside = lasting & (begin < window.end) & (end > window.start)
    assert shown - set(np.flatnonzero(~lasting)) == set(np.flatnonzero(inside))
    first = {}
    for event in found:
        if event["ph"] == "C":
            assert window.start <= nanoseconds(event["ts"]) <= window.end
            first.setdefault(event["name"], (nanoseconds(event["ts"]), *event["args"].values()))
    value = ((begin <= window.start) & ((record.left > window.start) | (record.left < 0))).sum()
    at, shown_value = first.get("in generation", (window.start, 0))
    assert at > window.start or shown_value == value


@settings(max_examples=40, deadline=None)
@given(laws(), LENGTHS, st.integers(1, 30), st.floats(0, 0.9))
def test_a_window_that_is_held_is_the_longest_with_so_many_groups(law, longest, most, share):
    record = clocked(law, longest)[0]
    window = held(record, int(share * record.stop), most)
    launch, until = record.groups["launch"], record.until
    later = np.unique(launch[launch > window.start])

    def overlapping(end):
        return ((launch < end) & (until > window.start)).sum()

    if window.end > window.start:
        assert overlapping(window.end) <= most
    longer = later[later > window.end]
    assert window.end == record.stop or overlapping((longer if len(longer) else [record.stop])[0]) > most


def test_drops_have_a_track_of_their_own():
    record = clocked(WORKED_LAW, WORKED_LENGTHS)[0]
    record.groups["dropped"][6] = 12 * UNIT
    record.fate[6] = "never"
    found = list(events(*pair(record)))
    drops = [(e["ts"] / MS, e["args"]) for e in found if e["ph"] == "i" and e["tid"] == DROPS]
    assert drops == [(12, {"group": 6, "version": 2, "after": 4})]
    assert in_units(slices(found)[GENERATION, SLOTS])[-1] == ("group 6 (never)", 8, 12)
    assert counts(record)[("in generation", "groups")][1][-1] == 0
