"""The fast engine against the reference: every column of the ledger, event for event."""

import json
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from clock.cases import LENGTHS, WORKED_LAW, WORKED_LENGTHS, laws, random_law
from clock.helpers import Table, rows
from hypothesis import given, settings
from hypothesis import strategies as st

from delaysim.clock import Law, Stalled
from delaysim.clock.fast import PER_GROUP, PER_UPDATE, durations, run_fast, run_with, unknown_setting
from delaysim.clock.lengths import KeyedLengths, Lognormal
from delaysim.clock.trace import run_alone

pytest.importorskip("numba", reason="numba is not installed: pip install 'delaysim[fast]'")
GOLDEN = Path(__file__).parent / "golden"
ORDERS = ("completion", "submit", "version")


def record(run):
    """All that downstream reads of a run."""
    columns = {name: getattr(run.ledger, name).tolist() for name in (*PER_GROUP, *PER_UPDATE)}
    columns |= {f"{name} of columns()": values.tolist() for name, values in run.ledger.columns().items()}
    return columns | {"dropped": list(run.ledger.dropped.items()), "now": run.now}


def outcome(run, *arguments, **how):
    """The record, or what a run that cannot end says."""
    try:
        return record(run(*arguments, **how))
    except Stalled as stalled:
        return str(stalled)


def both(law, longest, **how):
    return outcome(run_fast, law, Table(longest), **how), outcome(run_alone, law, Table(longest))


def policies(law):
    """A law with any of the orders and drops; not those that go on for ever where groups end at their launch."""
    queues = (None,) if law.c_gen == 0 else (None, 1, 1.5, 3)
    ahead = (law.look_ahead,) if law.c_gen == 0 or law.workers is None else (law.look_ahead, None)
    changed = st.fixed_dictionaries(
        {
            "order": st.sampled_from(ORDERS),
            "queue_drop": st.sampled_from(queues),
            "age_max": st.sampled_from((None, 0, 1, 4)),
            "look_ahead": st.sampled_from(ahead),
            "steps": st.integers(1, 2),
            "sync_time": st.sampled_from((0.0, 0.7)),
        }
    )
    return changed.map(lambda given: replace(law, **given))


def random_policies(rng, **given):
    """The same for a larger law, with its lengths."""
    law, longest = random_law(rng, **given)
    pick = [None] * 3 + ([] if law.c_gen == 0 else [1, 1.5, 4])
    return replace(
        law,
        order=ORDERS[rng.integers(3)],
        queue_drop=pick[rng.integers(len(pick))],
        age_max=[None, None, 0, 2, 8][rng.integers(5)],
        coupling=("affine", "power", "cap")[rng.integers(3)],
    ), longest


@settings(max_examples=250, deadline=None)
@given(laws().flatmap(policies), LENGTHS)
def test_small_runs_with_many_ties_equal_the_reference(law, longest):
    fast, reference = both(law, longest)
    assert fast == reference


@settings(max_examples=100, deadline=None)
@given(laws().flatmap(policies), LENGTHS, st.integers(1, 5))
def test_a_run_that_asks_for_room_in_pieces_is_the_same(law, longest, room):
    fast, reference = both(law, longest, room=room)
    assert fast == reference


@pytest.mark.slow
def test_a_thousand_random_runs_equal_the_reference():
    dropped = 0
    for seed in range(1000):
        rng = np.random.default_rng([seed, 3])
        law, longest = random_policies(rng, workers=None if seed % 2 else int(rng.choice([1, 2, 3, 5, 8, 20, 1000])))
        fast, reference = both(law, longest)
        assert fast == reference, seed
        dropped += len(fast["dropped"])
    assert dropped > 10_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("order", "drops"), [("completion", {}), ("submit", {"queue_drop": 2}), ("version", {"age_max": 150})]
)
def test_a_long_run_of_drawn_lengths_equals_the_reference(order, drops):
    law = Law(6000, 8, 157, 85.0, 1.0, 1.0, 600.0, order=order, **drops)
    lengths = KeyedLengths(Lognormal(600, 0.7, 0.5, 3072), 8, seed=5)
    fast = record(run_fast(law, lengths))
    assert fast == record(run_alone(law, lengths))
    assert bool(drops) == bool(fast["dropped"])


@pytest.mark.parametrize("drops", [{"queue_drop": 2}, {"age_max": 150}, {"workers": 900, "look_ahead": None}])
def test_lengths_are_drawn_for_few_groups_more_than_are_launched(drops):
    law = replace(Law(6000, 8, 157, 85.0, 1.0, 1.0, 600.0), **drops)
    lengths, asked = KeyedLengths(Lognormal(600, 0.7, 0.5, 3072), 8, seed=5), []
    lengths.sizes = lambda groups, sizes=lengths.sizes: asked.append(groups) or sizes(groups)
    launched = len(run_fast(law, lengths).ledger)
    first = (law.n_updates + (law.look_ahead or 0)) * 8
    assert [groups.start for groups in asked] == [0, *(groups.stop for groups in asked[:-1])]
    assert first < launched <= asked[-1].stop < 1.05 * launched


@pytest.mark.slow
def test_a_run_that_drops_without_end_says_what_the_reference_says():
    law = Law(3, 1, 3, 0.0, 1.0, order="version", queue_drop=2)
    with pytest.raises(Stalled, match=r"waits, and group after group is dropped: clock\.queue_drop is too low"):
        run_fast(law, Table([1]))


CHANGES = {
    "noise": 0.5, "order": "lifo", "abort_age": 3, "timeout": 9.0, "requeue": True, "zero_variance": "replaced",
    "slots": 4, "arrivals": 2.0, "start": "ramp", "sync_every": 2, "reward_lag": 0.5, "replay": 0.5,
}  # fmt: skip
KNOWN = {
    "n_updates", "groups_per_update", "look_ahead", "c_gen", "c_update", "lam", "l_ref", "t_min", "workers", "coupling",
    "stat", "l_cap", "pilot_sizes", "queue_drop", "age_max", "attempts", "group_size", "speed", "sync_time", "steps",
    "replay_window",
}  # fmt: skip
"""Settings of a law that the engine reads, or that mean nothing without one of CHANGES."""


def test_every_setting_of_a_law_is_known_or_refused():
    """A setting that is new in the law belongs in one of the two lists."""
    law = Law(4, 2, 3, 5.0, 1.0, 1.0, 2.0)
    assert {field.name for field in fields(Law)} == KNOWN | CHANGES.keys() | {"sync_mode"}
    assert unknown_setting(law) is None
    for name, value in CHANGES.items():
        assert unknown_setting(replace(law, **{name: value})) == f"{name}={str(value).lower()}"
    assert unknown_setting(replace(law, sync_time=1.0, sync_mode="background")) == "sync_mode=background"
    assert unknown_setting(replace(law, look_ahead=None)) == "eta=none"


def test_an_unknown_setting_is_run_by_the_reference_and_named():
    law = Law(8, 2, 3, 5.0, 1.0, 1.0, 2.0, order="lifo")
    run, engine = run_with("fast", law, Table(WORKED_LENGTHS), 0)
    assert engine == "SimPy, the reference: the fast one does not know clock.order=lifo"
    assert record(run) == record(run_alone(law, Table(WORKED_LENGTHS)))


def test_the_worked_example():
    fast, reference = both(WORKED_LAW, WORKED_LENGTHS)
    assert fast == reference
    assert [tick // 10**6 for tick in fast["poll"]] == [4, 7, 10, 15]


@pytest.mark.parametrize("lam", [0.0, 0.5, 1.0])
def test_the_golden_traces(lam):
    longest = [max(group) for group in json.loads((GOLDEN / "lengths.json").read_text())]
    run = run_fast(Law(40, 4, 12, 10.0, 1.0, lam, 40.0), Table(longest))
    assert json.loads((GOLDEN / f"coupled_{lam:g}.json").read_text()) == rows(run)


@settings(max_examples=60, deadline=None)
@given(laws(), st.lists(st.one_of(st.integers(0, 5000), st.integers(0, 10**12)), max_size=50))
def test_durations_are_those_of_the_law(law, lengths):
    assert durations(law, np.array(lengths, np.int64)).tolist() == [law.duration(length) for length in lengths]


@settings(max_examples=200, deadline=None)
@given(st.floats(1e-3, 1e4), st.floats(1e-3, 10), st.floats(0.1, 1e5), st.lists(st.integers(0, 10**5), max_size=50))
def test_durations_are_exact_for_any_numbers(c_gen, lam, l_ref, lengths):
    law = Law(1, 1, 0, c_gen, 1.0, lam, l_ref)
    assert durations(law, np.array(lengths, np.int64)).tolist() == [law.duration(length) for length in lengths]
