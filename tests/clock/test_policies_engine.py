"""Slots that share a throughput: by hand, and against exact fractions without the trick of one common progress."""

from fractions import Fraction
from itertools import pairwise
from math import ceil

import numpy as np
import pytest
from clock.policies import play
from hypothesis import given, settings
from hypothesis import strategies as st

from delaysim.clock import Law
from delaysim.clock.engine import Engine

UNIT = 1_000_000
CURVE = ((1.0, 10.0), (2.0, 16.0), (4.0, 28.0))


def law(slots, speed=CURVE, **rest):
    return Law(1, 1, 0, 1.0, 1.0, slots=slots, speed=speed, **rest)


def ends(engine, starts, cuts=()):
    """Tick at which each group ends; `starts`: (tick, group, lengths), `cuts`: (tick, group), both by tick."""
    ended, changes = {}, sorted([*((t, 0, g, None) for t, g in cuts), *((t, 1, g, ls) for t, g, ls in starts)])
    while changes or engine.next_end() is not None:
        end = engine.next_end()
        if end is not None and (not changes or end <= changes[0][0]):
            ended |= dict.fromkeys(engine.finished(end), end)
        else:
            tick, _, group, lengths = changes.pop(0)
            if lengths is not None:
                engine.start(group, lengths, tick)
            elif group not in ended:
                engine.cut(group, tick)
        assert 0 <= engine.working <= engine._slots
    return ended


class Exact:
    """Every response counts its own tokens down, in fractions; ends fall on the next whole tick."""

    def __init__(self, slots, speed):
        self.slots, self.speed, self.now, self.working, self.waiting, self.tokens = slots, speed, 0, [], [], 0

    def rate(self):
        count, points = len(self.working), [(Fraction(a), Fraction(b)) for a, b in self.speed]
        if count <= points[0][0]:
            return points[0][1] / points[0][0]
        for (low, slow), (high, fast) in pairwise(points):
            if count <= high:
                return (slow + (fast - slow) * (count - low) / (high - low)) / count
        return points[-1][1] / count

    def next_end(self):
        return self.now + ceil(max(0, min(left for _, left in self.working)) / self.rate() * UNIT)

    def advance(self, tick):
        done = self.rate() * (tick - self.now) / UNIT if self.working else 0
        self.tokens += sum(min(done, left) for _, left in self.working)
        self.working = [(group, left - done) for group, left in self.working]
        self.now = tick

    def fill(self):
        while self.waiting and len(self.working) < self.slots:
            self.working.append(self.waiting.pop(0))

    def ends(self, starts, cuts):
        ended, changes = {}, sorted([*((t, 0, g, None) for t, g in cuts), *((t, 1, g, ls) for t, g, ls in starts)])
        while changes or self.working:
            if self.working and (not changes or self.next_end() <= changes[0][0]):
                self.advance(self.next_end())
                gone = {group for group, left in self.working if left <= 0}
                self.working = [entry for entry in self.working if entry[1] > 0]
                still = {group for group, _ in self.working + self.waiting}
                ended |= dict.fromkeys(gone - still, self.now)
            else:
                tick, _, group, lengths = changes.pop(0)
                self.advance(tick)
                if lengths is None:
                    self.working = [entry for entry in self.working if entry[0] != group]
                    self.waiting = [entry for entry in self.waiting if entry[0] != group]
                else:
                    self.waiting += [(group, Fraction(length)) for length in lengths]
            self.fill()
        return ended


curves = st.sampled_from([CURVE, ((3.0, 30.0),), ((1.0, 7.0), (3.0, 13.0), (6.0, 17.0))])
groups = st.lists(st.tuples(st.integers(0, 8), st.lists(st.integers(1, 30), min_size=1, max_size=4)), max_size=8)


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 7), curves, groups, st.lists(st.tuples(st.integers(0, 12), st.integers(0, 7)), max_size=3))
def test_equal_shares_against_exact_fractions(slots, speed, groups, cuts):
    """A tick or so per event is what floats and whole ticks leave."""
    starts = [(at * UNIT // 2 + 1, group, lengths) for group, (at, lengths) in enumerate(groups)]
    started = {group: tick for tick, group, _ in starts}
    cuts = {g: max(at * UNIT // 2 + 7, started[g] + 5) for at, g in cuts if g in started}
    cuts = [(tick, group) for group, tick in cuts.items()]
    found, exact = ends(Engine(law(slots, speed)), starts, cuts), Exact(slots, speed).ends(starts, cuts)
    assert found.keys() == exact.keys()
    assert all(abs(found[group] - exact[group]) <= 60 for group in found)


@pytest.mark.parametrize(
    ("count", "together"), [(1, 10), (2, 16), (3, 22), (4, 28), (9, 28)], ids=lambda value: str(value)
)
def test_throughput_between_the_points_of_the_curve(count, together):
    """Alike responses end together: `count` of 70 tokens take 70 * count / together."""
    ended = ends(Engine(law(9)), [(0, group, [70]) for group in range(count)])
    assert set(ended.values()) == {ceil(70 * count / together * UNIT)}


def test_below_the_first_point_a_response_is_as_fast_as_there():
    assert ends(Engine(law(9, ((4.0, 40.0),))), [(0, 0, [20])]) == {0: 2 * UNIT}


def test_without_a_curve_each_response_has_its_own_speed():
    """L_ref / C_gen = 2 tokens per unit."""
    engine = Engine(Law(1, 1, 0, 3.0, 1.0, l_ref=6.0, slots=4))
    assert ends(engine, [(0, 0, [4, 10]), (UNIT, 1, [2])]) == {0: 5 * UNIT, 1: 2 * UNIT}


def test_a_waiting_response_takes_the_slot_of_one_that_ends():
    """Two slots, 8 tokens per unit each: the 8 end at 1, the third starts; 16 and 24 left, at 3 the second ends.

    The third has 8 left and is alone: 10 per unit.
    """
    assert ends(Engine(law(2)), [(0, 0, [8, 24]), (0, 1, [24])]) == {0: 3 * UNIT, 1: 3_800_000}


def test_a_cut_group_leaves_its_slots_at_once():
    """At 0.5 group 0 goes and the 16 of group 1 start, alone: 10 per unit."""
    assert ends(Engine(law(2)), [(0, 0, [8, 24]), (0, 1, [16])], [(UNIT // 2, 0)]) == {1: 2_100_000}


def test_a_cut_does_not_put_off_what_ends_at_its_tick():
    engine = Engine(law(2))
    engine.start(0, [32], 0)
    engine.start(1, [16], 0)
    engine.cut(0, 2 * UNIT)
    assert engine.next_end() == 2 * UNIT
    assert engine.finished(2 * UNIT) == [1]


def test_full_slots_generate_the_whole_throughput():
    """Tokens of all groups over the end of the last: while the slots are full, 28 per unit, up to the last few."""
    rng = np.random.default_rng(0)
    starts = [(0, group, rng.integers(1, 40, 4).tolist()) for group in range(200)]
    tokens = sum(sum(lengths) for _, _, lengths in starts)
    last = max(ends(Engine(law(4)), starts).values()) / UNIT
    assert tokens / 28 <= last <= tokens / 28 + 40 / 10


def test_groups_are_launched_while_one_response_finds_a_slot():
    """Three slots, one token per unit, groups of 1 and 2 tokens: three responses of groups 0 and 1 start at 0.

    At 1 two end and the fourth starts: one slot is free, for group 2. At 2 group 0 is done, and group 2 has both slots.
    """
    clock, _ = play(Law(2, 1, 9, 1.0, 0.5, slots=3, group_size=2), lambda prompt, attempt: [1, 2])
    assert [tick / UNIT for tick in clock.ledger.launch][:3] == [0, 0, 1]
    assert [tick / UNIT for tick in clock.ledger.due][:2] == [2, 3]
