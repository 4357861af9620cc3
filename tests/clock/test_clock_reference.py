"""The clock against rules written a second time: the closed recurrence, and a search without an event queue."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from clock.cases import LENGTHS, laws, random_law
from clock.helpers import drive, rows
from clock.reference import reference
from clock.worker_reference import WorkerReference
from hypothesis import given, settings
from hypothesis import strategies as st

from delaysim.clock import Law

GOLDEN = Path(__file__).parent / "golden"


def cycled(longest):
    return (longest * 100)[:100]


def test_larger_runs_equal_the_reference():
    for seed in range(300):
        law, longest = random_law(np.random.default_rng(seed))
        assert rows(drive(law, longest)[0]) == reference(law, longest), seed


@settings(max_examples=200, deadline=None)
@given(laws(workers=st.none(), lam=(0.0,)), LENGTHS)
def test_uncoupled_runs_equal_the_reference(law, longest):
    """C_gen = 0 included: then groups complete at the tick of their launch."""
    assert rows(drive(law, longest)[0]) == reference(law, cycled(longest))


@settings(max_examples=400, deadline=None)
@given(laws(), LENGTHS)
def test_limited_workers_equal_the_search(law, longest):
    assert rows(drive(law, longest)[0]) == WorkerReference(law, cycled(longest)).run()


def test_larger_runs_with_limited_workers_equal_the_search():
    for seed in range(300):
        rng = np.random.default_rng([seed, 1])
        law, longest = random_law(rng, workers=int(rng.choice([1, 2, 3, 5, 8, 20, 1000])))
        assert rows(drive(law, longest)[0]) == WorkerReference(law, longest).run(), seed


def test_as_many_workers_as_groups_are_no_limit():
    for seed in range(40):
        law, longest = random_law(np.random.default_rng([seed, 2]))
        enough = replace(law, workers=(law.look_ahead + 1) * law.groups_per_update)
        assert rows(drive(enough, longest)[0]) == rows(drive(law, longest)[0]), seed


@pytest.mark.parametrize("lam", [0.0, 0.5, 1.0])
def test_the_goldens_are_what_the_rules_say(lam):
    longest = [max(group) for group in json.loads((GOLDEN / "lengths.json").read_text())]
    law = Law(40, 4, 12, 10.0, 1.0, lam, 40.0)
    assert json.loads((GOLDEN / f"coupled_{lam:g}.json").read_text()) == reference(law, longest)


def test_a_completion_at_a_publish_is_ready_under_the_new_version():
    """B=1, eta=1: group 1 completes at 5, the tick at which update 0 (group 0, done at 4) is published."""
    clock, _ = drive(Law(2, 1, 1, 1.0, 1.0, 1.0, 1.0), [4, 5, 9])
    assert rows(clock)[1] == [0, 0, 5_000_000, 1, 5_000_000, 1]
    assert clock.ledger.launch[2] == 5_000_000
