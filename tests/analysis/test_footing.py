"""Policies of the clock as settings: one name for what drops groups, defaults where others leave them off, auto."""

from dataclasses import replace

import pytest
from fabricated import made
from hypothesis import given
from hypothesis import strategies as st

from delaysim.analysis.budget import budgets
from delaysim.analysis.footing import filled
from delaysim.analysis.grid import arrange, ordered, select, setting, varying
from delaysim.analysis.settings import LIMITS, UNSAID, with_drop
from delaysim.errors import UserError


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"age_max": 30}, "age_max=30"),
        ({"queue_drop": 2.0}, "queue_drop=2"),
        ({"timeout": 0.5, "age_max": 8}, "age_max=8+timeout=0.5"),
        ({"requeue": True, "attempts": 3, "timeout": 40.0}, "timeout=40+requeue+attempts=3"),
    ],
)
def test_limits_are_one_setting(limits, said):
    flat = {"clock.lam": 1.0, **{f"clock.{name}": value for name, value in limits.items()}, "timeout": "another"}
    assert with_drop(flat) == {"clock.lam": 1.0, "timeout": "another", "drop": said}


def test_without_limits_nothing_is_added():
    assert with_drop({"clock.order": "lifo"}) == {"clock.order": "lifo"}


@given(st.dictionaries(st.sampled_from(LIMITS), st.integers(1, 99)), st.dictionaries(st.sampled_from("ab"), st.none()))
def test_two_runs_have_one_name_only_where_their_limits_are_the_same(limits, rest):
    flat = rest | {f"clock.{name}": value for name, value in limits.items()}
    found = with_drop(flat)
    assert found.keys() - {"drop"} == rest.keys()
    parts = [part.split("=") for part in found.get("drop", "").split("+") if part]
    assert {part[0]: float(part[-1]) for part in parts} == limits


def test_what_one_run_has_the_others_have_too_as_it_is_where_it_is_off():
    tables = filled([{"drop": "age_max=8"}, {"clock.order": "lifo"}, {"learner.kl": 0.1, "own": 1}])
    order = {"drop": "none", "clock.order": "completion", "learner.kl": 0}
    assert tables == [
        order | {"drop": "age_max=8"},
        order | {"clock.order": "lifo"},
        order | {"learner.kl": 0.1, "own": 1},
    ]


def test_every_limit_and_policy_that_is_off_has_a_name_for_it():
    assert UNSAID["drop"] == "none"
    assert not any(f"clock.{name}" in UNSAID for name in LIMITS)
    assert UNSAID["clock.sync_every"] == 1


def test_policies_compare_by_drop_and_are_chosen_by_it():
    runs = select([made([0.5], seed, **drop) for seed in (0, 1) for drop in ({}, {"drop": "age_max=30"},
                   {"drop": "age_max=8"})], {})  # fmt: skip
    assert varying(runs) == ["drop"]
    (stratum,) = arrange(runs, "drop", ())
    assert list(stratum.cells) == ["none", "age_max=8", "age_max=30"]
    assert {run.seed for run in select(runs, {"drop": ["none"]})} == {0, 1}
    assert len(select(runs, {"drop": ["age_max=8", "none"]})) == 4
    with pytest.raises(UserError, match=r"no run has drop=timeout=4; the runs have drop=none, age_max=30, age_max=8"):
        select(runs, {"drop": ["timeout=4"]})


def test_names_are_ordered_by_the_numbers_in_them():
    names = ["none", "timeout=40", "age_max=30", "timeout=4.5", "a3po", "age_max=8", "a10"]
    assert sorted(names, key=ordered) == ["none", "a3po", "a10", "age_max=8", "age_max=30", "timeout=4.5", "timeout=40"]


def test_a_policy_in_a_sentence():
    assert [setting("drop", value) for value in ("none", None, "age_max=8")] == ["no drop", "no drop", "age_max=8"]
    assert setting("eps", 0.280) == "eps=0.28"


def swept():
    etas = ((0, 0), (4, 4), ("auto", 37))
    return [replace(made([0.9, 0.9], seed, eta=eta), look_ahead=came) for eta, came in etas for seed in (0, 1)]


def test_auto_is_the_number_it_came_to_beside_numbers_and_a_budget_reaches_it():
    runs = select(swept(), {})
    assert [run.settings["eta"] for run in runs] == [0, 0, 4, 4, 37, 37]
    (found,) = budgets(arrange(runs, "estimator", ["eta"]), "eta", None, 0.02, 0.95)
    assert found.largest == 37


def test_auto_stays_where_nothing_else_was_asked():
    """Two couplings with look-aheads of their own are two values of lam, not of eta."""
    runs = [replace(made([0.9], 0, eta="auto", lam=lam), look_ahead=came) for lam, came in ((0.0, 20), (1.0, 37))]
    assert varying(select(runs, {})) == ["lam"]


@pytest.mark.parametrize("asked", ["auto", "37"])
def test_auto_is_chosen_by_either_name(asked):
    assert [run.look_ahead for run in select(swept(), {"eta": [asked]})] == [37, 37]
