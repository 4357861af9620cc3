"""A log that the clock itself wrote, imported and simulated again: the same law gives the same delays, exactly."""

from dataclasses import replace

import numpy as np
import pytest
from clock.helpers import drive

from delaysim.clock import Law
from delaysim.clock.trace import group_rows
from delaysim.errors import UserError
from delaysim.importing.given import law_fields
from delaysim.importing.ledger import Ledger
from delaysim.importing.resimulate import Impossible, resimulate
from delaysim.importing.row import Row

SIZES = np.random.default_rng(3).lognormal(5, 0.8, 600).astype(int).clip(1).tolist()


def log_of(law, times=True, sizes=SIZES):
    """What the clock did, as rows of one response a group."""
    rows = group_rows(drive(law, sizes)[0].ledger)
    known = rows["update"] >= 0
    return Ledger.of(
        Row(
            group_id=str(g), sample=0, tokens=sizes[g % len(sizes)], version_start=rows["version"][g],
            consumed_update=rows["update"][g] if known[g] else None, status="trained" if known[g] else "pending",
            submit_t=float(rows["launch"][g]) if times else None,
            done_t=float(rows["done"][g]) if times and known[g] else None,
        )
        for g in rows["group"].tolist()
    )  # fmt: skip


def law(**fields):
    launched = (fields["look_ahead"] + 40) * 3
    tokens = [SIZES[g % len(SIZES)] for g in range(launched)]
    return Law(
        **{
            "n_updates": 40,
            "groups_per_update": 3,
            "c_update": 1.0,
            "lam": 1.0,
            "l_ref": float(np.mean(tokens)),
            **fields,
        }
    )


def test_the_same_law_gives_the_same_delays():
    ledger = log_of(law(look_ahead=5, c_gen=4.0))
    found = resimulate(ledger, {"look_ahead": 5, "c_gen": 4.0}, None, False)
    assert found.law == law(look_ahead=5, c_gen=4.0)
    assert found.realised == found.simulated
    assert found.distance == 0
    assert not found.fitted


@pytest.mark.parametrize("eta", [0, 1, 4, 9])
def test_the_fitted_look_ahead_is_the_one_that_was(eta):
    ledger = log_of(law(look_ahead=eta, c_gen=3.0), times=False)
    found = resimulate(ledger, {"c_gen": 3.0}, None, False)
    assert (found.law.look_ahead, found.fitted, found.distance) == (eta, True, 0)


def test_a_law_without_coupling_has_a_constant_delay():
    ledger = log_of(law(look_ahead=7, c_gen=7.0, lam=0.0))
    found = resimulate(ledger, {"lam": 0.0}, None, False)
    assert found.cost == "times"
    assert found.law.c_gen == pytest.approx(7.0)
    assert (found.law.look_ahead, found.simulated["max"], found.distance) == (7, 7, 0)


def test_times_give_the_cost_of_generation():
    ledger = log_of(law(look_ahead=6, c_gen=5.0))
    found = resimulate(ledger, {}, None, False)
    assert found.cost == "times"
    assert found.law.c_gen == pytest.approx(5.0, rel=0.2)
    assert found.law.look_ahead == 6


def test_a_log_that_begins_later_is_compared_on_its_own_updates():
    whole = log_of(law(look_ahead=5, c_gen=4.0))
    late = [i for i in range(len(whole)) if not whole["consumed_update"][i] < 10]
    part = Ledger(
        {key: [values[i] for i in late] for key, values in whole.texts.items()},
        {key: values[late] for key, values in whole.numbers.items()},
    )
    found = resimulate(part, {"look_ahead": 5, "c_gen": 4.0}, None, False)
    assert found.first_update == 10
    assert found.simulated["count"] == found.realised["count"] == 90
    assert any("begins at update 10" in note for note in found.notes)


def test_what_is_missing_is_said():
    with pytest.raises(Impossible, match="no delays"):
        resimulate(Ledger.of([Row(tokens=4)]), {}, None, False)
    with pytest.raises(Impossible, match="neither lengths nor times"):
        resimulate(Ledger.of([Row(version_start=0, consumed_update=1)]), {}, None, False)
    with pytest.raises(Impossible, match="more than"):
        resimulate(Ledger.of([Row(version_start=0, consumed_update=10**9, tokens=3)]), {}, None, False)


def test_fields_of_the_law_by_the_names_of_the_configuration():
    pairs = [("eta", "4"), ("C_gen", "2.5"), ("workers", "none"), ("lam", "0"), ("order", "lifo"), ("requeue", "true")]
    found = {"look_ahead": 4, "c_gen": 2.5, "workers": None, "lam": 0.0, "order": "lifo", "requeue": True}
    assert law_fields(pairs) == found
    assert law_fields([("eta", "none"), ("workers", "8")]) == {"look_ahead": None, "workers": 8}


@pytest.mark.parametrize(
    "policy", [{"age_max": 4}, {"age_max": 4, "requeue": True}, {"queue_drop": 1.0}, {"abort_age": 5}]
)
@pytest.mark.parametrize("order", ["completion", "version", "lifo"])
def test_a_log_of_a_system_that_drops_is_simulated_with_its_rule(policy, order):
    made = law(look_ahead=3, c_gen=6.0, order=order, **policy)
    rows = group_rows(drive(made, SIZES)[0].ledger)
    trained = rows["update"] >= 0
    ledger = Ledger.of(
        Row(
            group_id=str(g), sample=0, tokens=SIZES[rows["prompt"][g] % len(SIZES)], version_start=rows["version"][g],
            consumed_update=rows["update"][g] if trained[g] else None, status="trained" if trained[g] else "dropped",
        )
        for g in rows["group"].tolist()
    )  # fmt: skip
    found = resimulate(ledger, {"look_ahead": 3, "c_gen": 6.0, "order": order, **policy}, None, False)
    if "requeue" not in policy:
        same = replace(made, l_ref=found.law.l_ref)
        assert found.law == same
        again = group_rows(drive(same, SIZES)[0].ledger)
        assert found.simulated["mean"] == again["delay"][again["update"] >= 0].mean()
    assert found.simulated["max"] <= 4 or "age_max" not in policy
    assert not any("drops none" in note for note in found.notes)


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (("etaa", "4"), "--law etaa=4: no such field; choose one of eta"),
        (("n_updates", "4"), "--law n_updates=4: no such field"),
        (("eta", "4.5"), "--law eta=4.5: give a whole number or none from 0"),
        (("eta", "-1"), "--law eta=-1: give a whole number"),
        (("lam", "nan"), "--law lam=nan: give a number from 0 to 1,000,000"),
        (("C_gen", "__import__('os')"), "--law C_gen=__import__"),
        (("order", "fifo"), "--law order=fifo: choose one of completion, lifo"),
        (("requeue", "1"), "--law requeue=1: give true or false"),
        (("eta", "none"), "--law eta=none: nothing holds generation back"),
        (("stat", "sum"), "--law stat=sum: no such field"),
    ],
)
def test_fields_that_cannot_be_are_refused(pair, message):
    with pytest.raises(UserError) as error:
        law_fields([pair])
    assert str(error.value).startswith(message)
