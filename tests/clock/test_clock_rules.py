"""The clock against its reference, its goldens, and its invariants."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from clock.helpers import Table, drive, rows
from clock.reference import reference
from hypothesis import given, settings
from hypothesis import strategies as st

from delaysim.clock import Clock, Law, Stalled
from delaysim.clock.lengths import Empirical, KeyedLengths, Lognormal
from delaysim.clock.pilot import settle
from delaysim.clock.trace import group_rows, moments, run_alone

GOLDEN = Path(__file__).parent / "golden"
LENGTHS = GOLDEN / "lengths.json"
TABLE = json.loads(LENGTHS.read_text())

small = st.integers(1, 6)
laws = st.builds(
    Law,
    n_updates=st.integers(1, 12),
    groups_per_update=st.integers(1, 4),
    look_ahead=st.integers(0, 6),
    c_gen=st.sampled_from([0.5, 1.0, 4.0, 7.3]),
    c_update=st.sampled_from([0.3, 1.0, 2.0]),
    lam=st.sampled_from([0.0, 0.5, 1.0, 1.5]),
    l_ref=st.sampled_from([1.0, 2.0, 3.7]),
)
lengths = st.lists(small, min_size=1, max_size=60)


@settings(max_examples=400, deadline=None)
@given(laws, lengths)
def test_rows_equal_the_reference(law, longest):
    cycled = (longest * 100)[:100]
    assert rows(drive(law, longest)[0]) == reference(law, cycled)


@pytest.mark.parametrize("lam", [0.0, 0.5, 1.0])
def test_coupled_golden_traces(lam):
    longest = [max(group) for group in TABLE]
    law = Law(40, 4, 12, 10.0, 1.0, lam, 40.0)
    found = rows(drive(law, longest)[0])
    path = GOLDEN / f"coupled_{lam:g}.json"
    if os.environ.get("DELAYSIM_REGENERATE_GOLDEN") == "1":
        path.write_text("[\n" + ",\n".join(map(json.dumps, found)) + "\n]\n")
    assert found == json.loads(path.read_text())


@pytest.mark.parametrize("eta", [1, 7, 30])
@pytest.mark.parametrize("law", [Lognormal(600, 0.7, 0.5, 3072), Lognormal(100, 0.3, 0.0, 400)], ids=["heavy", "light"])
def test_steady_mean_delay_is_the_look_ahead(eta, law):
    """Little's law in updates: while admission binds, the mean delay is eta, whatever the lengths."""
    lengths = KeyedLengths(law, 8, seed=3)
    setting = Law(max(2000, 12 * (eta + 1)), 8, eta, 85.0, 1.0, 1.0, law.mean)
    clock = run_alone(setting, lengths)
    m = moments(group_rows(clock.ledger), setting, clock.now / 1e6)
    assert m["delay_mean_steady"] == pytest.approx(eta, rel=0.005)


def test_the_pilot_balances_generation_and_learner():
    """The tail multiplier of eight lognormal lengths is 1.854, so eta is about 85 * 1.854 = 157."""
    table = KeyedLengths(Lognormal(600, 0.7, 0.5, 3072), 8, seed=0).table(40_000)
    law = settle(Law(1, 8, 0, 85.0, 1.0, 1.0), table, None, None)
    assert table.max(1).mean() / table.mean() == pytest.approx(1.854, rel=0.01)
    assert law.look_ahead == pytest.approx(157, abs=2)
    assert law.l_ref == table.mean()


def test_given_values_are_not_taken_from_the_pilot():
    law = settle(Law(1, 8, 0, 85.0, 1.0, 1.0), [[10, 20], [30, 40]], 30.0, None)
    assert (law.l_ref, law.look_ahead) == (30.0, 85)
    assert settle(law, [[10, 20]], None, 7).look_ahead == 7


workers = st.one_of(st.none(), st.integers(1, 9))


@settings(max_examples=200, deadline=None)
@given(laws, lengths, workers)
def test_the_ledger_closes(law, longest, slots):
    law = Law(**{**vars(law), "workers": slots})
    clock, asked = drive(law, longest)
    r = group_rows(clock.ledger)
    trained = r["update"] >= 0
    assert trained.sum() == law.n_updates * law.groups_per_update
    if slots is None:
        assert len(clock.ledger) == (law.look_ahead + law.n_updates) * law.groups_per_update
    batches = [step.train.groups for step in asked if step.train]
    assert len(batches) == law.n_updates
    assert all(list(batch) == sorted(set(batch)) for batch in batches)
    assert len({group for batch in batches for group in batch}) == trained.sum()
    assert (r["launch"][trained] <= r["done"][trained]).all()
    assert (r["done"][trained] <= r["consumed"][trained]).all()
    assert (r["pre_queue"][trained] >= 0).all()
    assert (r["in_queue"][trained] >= 0).all()
    assert (r["pre_queue"] + r["in_queue"] == r["delay"])[trained].all()


@settings(max_examples=200, deadline=None)
@given(laws, lengths, st.integers(1, 5))
def test_no_more_than_workers_generate_at_once(law, longest, slots):
    clock, _ = drive(Law(**{**vars(law), "workers": slots}), longest)
    launch, due = np.array(clock.ledger.launch), np.array(clock.ledger.due)
    for tick in set(launch.tolist()):
        assert ((launch <= tick) & (due > tick)).sum() <= slots


@settings(max_examples=200, deadline=None)
@given(laws, lengths, workers)
def test_every_launch_carries_the_weights_of_its_stamp(law, longest, slots):
    """A fake policy whose tokens spell its version: the driver trains and generates in the order it is asked to."""
    clock = Clock(Law(**{**vars(law), "workers": slots}))
    table, weights, spelled = Table(longest), 0, {}
    steps, answer = clock.steps(), None
    try:
        while True:
            step = steps.send(answer)
            answer = None
            if step.launch is not None:
                spelled |= dict.fromkeys(step.launch.groups, weights)
                answer = table.longest(step.launch.groups)
            if step.train is not None:
                assert step.train.update == weights
                if step.launch is not None:
                    assert not set(step.launch.groups) & set(step.train.groups)
                weights += 1
    except StopIteration:
        pass
    assert {group: clock.ledger.version[group] for group in spelled} == spelled


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_few_workers_launch_inside_updates(slots):
    """Otherwise the test above could not fail for workers."""
    clock, _ = drive(Law(8, 2, 6, 4.0, 3.0, 1.0, 2.0, workers=slots), [1, 2, 3, 1, 2])
    busy = list(zip(clock.ledger.poll, clock.ledger.publish, strict=True))
    assert any(poll < launch < publish for launch in clock.ledger.launch for poll, publish in busy)


def test_an_update_runs_beside_a_launch_where_it_is_decided_without_it():
    _, asked = drive(Law(30, 2, 6, 4.0, 1.0), [1])
    assert sum(step.launch is not None and step.train is not None for step in asked) > 20


def test_a_lost_group_is_named_by_the_stall():
    clock = Clock(Law(3, 2, 0, 4.0, 1.0, 1.0, 2.0))
    steps = clock.steps()
    steps.send(None)
    with pytest.raises(Stalled, match=r"update 0 needs B=2 groups, 1 are ready.*never completed: 1 \(version 0\)"):
        steps.send([3, None])


def test_a_launch_must_be_answered_whole():
    steps = Clock(Law(3, 2, 0, 4.0, 1.0, 1.0, 2.0)).steps()
    steps.send(None)
    with pytest.raises(ValueError, match="as many lengths"):
        steps.send([3])


@pytest.mark.parametrize(
    "law", [Lognormal(600, 0.7, 0.5, 3072), Empirical(np.arange(1, 500))], ids=["drawn", "recorded"]
)
def test_a_small_group_is_a_prefix_of_a_large_one(law):
    four, eight = (KeyedLengths(law, size, seed=1).table(3000) for size in (4, 8))
    assert (four == eight[:, :4]).all()
    late = KeyedLengths(law, 8, seed=1)
    assert late.longest(range(2990, 3000)) == eight[2990:].max(1).tolist()


def test_lognormal_moments():
    """Mean of a lognormal, standard deviation of its log, and the share of log-variance within a prompt."""
    table = KeyedLengths(Lognormal(600, 0.7, 0.5, 10**9), 8, seed=2).table(100_000).astype(float)
    logs = np.log(table)
    assert table.mean() == pytest.approx(600, rel=0.01)
    assert logs.std() == pytest.approx(0.7, rel=0.01)
    assert np.corrcoef(logs[:, 0], logs[:, 1])[0, 1] == pytest.approx(0.5, abs=0.01)
