"""The numbers of a ledger, by hand; and delays inferred from times, against the clock that made them."""

import numpy as np
import pytest
from clock.helpers import drive
from importing.logs import episode, read, session, table, write

from delaysim.clock import TICKS, Law
from delaysim.clock.trace import group_rows
from delaysim.importing.definitions import derived
from delaysim.importing.infer import can_infer, inferred
from delaysim.importing.ledger import Ledger, write_ledger
from delaysim.importing.row import Row
from delaysim.importing.summary import capped, distance, drops, quantile, summarise


def ledger_of(*rows):
    return Ledger.of(Row(**row) for row in rows)


def group(name, update, version, *tokens, status="trained", end=None):
    return [
        {
            "group_id": name, "sample": i, "tokens": n, "version_start": version,
            "version_end": version if end is None else end, "consumed_update": update, "status": status,
        }
        for i, n in enumerate(tokens)
    ]  # fmt: skip


def test_a_group_shares_the_delay_of_its_oldest_response():
    rows = [
        *group("a", 5, 3, 10),
        *group("a", 5, 1, 20),
        *group("b", 6, 6, 5),
        *group("b", None, 6, 7, status="failed"),
    ]
    groups = ledger_of(*rows).groups
    assert groups.delay.tolist() == [4, 0]
    assert groups.longest.tolist() == [20, 7]
    assert groups.size.tolist() == [2, 2]
    assert groups.of_row.tolist() == [0, 0, 1, 1]


def test_a_prompt_that_comes_again_is_another_group():
    groups = ledger_of(*group("p", 0, 0, 3), *group("p", 9, 7, 4), *group("p", None, 8, 5, status="dropped")).groups
    assert groups.update.tolist()[:2] == [0, 9]
    assert groups.kept.tolist() == [True, True, False]


def test_quantiles_are_values_that_occur():
    values = np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9.0])
    assert [quantile(values, share) for share in (0.5, 0.9, 0.91, 1)] == [4, 8, 9, 9]


def test_what_a_cap_was_in_fact():
    delays = [0, 1, 2, 3, 4, 4, 5, 6, 6, 8]
    ledger = ledger_of(*[{"consumed_update": 10, "version_start": 10 - d} for d in delays])
    assert capped(ledger, 4) == {"cap": 4, "p90": 6, "max": 8, "above": 0.4}
    assert capped(ledger, 8)["above"] == 0
    assert capped(ledger_of({"tokens": 3}), 4) is None
    sums = ledger_of(*[{"consumed_update": n, "reported_mean": 1.0, "reported_max": n} for n in range(4)])
    assert capped(sums, 1) == {"cap": 1, "p90": 3, "max": 3, "above": 0.5}


def test_distance_is_the_largest_gap():
    assert distance(np.array([1.0, 2, 3, 4]), np.array([1.0, 2, 3, 4])) == 0
    assert distance(np.array([1.0, 2]), np.array([3.0, 4])) == 1
    assert distance(np.array([1.0, 2, 3, 4]), np.array([1.0, 2, 9, 9])) == 0.5


def test_drops_are_told_by_length_and_pending_counts_as_neither():
    rows = [{"tokens": n, "status": "trained" if n <= 80 else "untrained"} for n in range(1, 101)]
    ledger = ledger_of(*rows, {"tokens": 1000, "status": "pending"}, {"status": "failed"})
    found = drops(ledger)
    assert found["reached"] == [1.0] * 8 + [0.0] * 2
    assert found["longest"] == [10.0 * i for i in range(1, 11)]
    assert (found["lost"], found["share"]) == (20, 0.2)
    assert (found["mean_trained"], found["mean_generated"]) == (40.5, 50.5)
    assert found["distance"] == pytest.approx(0.2)
    assert drops(ledger_of({"tokens": 4, "status": "trained"})) is None


def test_what_each_system_calls_staleness():
    rows = [*group("a", 9, 4, 10, end=7), *group("b", 9, 9, 10), *group("c", None, 8, 10, status="dropped", end=9)]
    columns = derived(ledger_of(*rows), None)
    assert {key: values[:2].tolist() for key, values in columns.items()} == {
        "delay": [5, 0], "delay_newest": [2, 0], "prime_rl": [5, 0], "prime_rl_in_flight": [3, 0],
        "prime_rl_in_queue": [2, 0], "tinker": [5, 0], "trl": [5, 0], "verl": [2, 0], "verl_worst": [5, 0],
        "verl_span": [4, 1],
    }  # fmt: skip
    assert columns["verl_span"][2] == 2


def test_areal_counts_what_was_admitted_before():
    """B=2. Two groups before the third: look-ahead 1 of version 0. The rejected one gives its place back at 5."""
    times = [(0, 9, "accepted"), (1, 5, "rejected"), (2, 9, "accepted"), (6, 9, "accepted")]
    rows = [
        {"group_id": str(i), "sample": 0, "submit_t": s, "done_t": d, "status": word, "version_start": 0}
        for i, (s, d, word) in enumerate(times)
    ]
    assert derived(ledger_of(*rows), 2)["areal"].tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("eta", [0, 1, 3])
def test_inferred_delays_are_those_of_a_clock_whose_updates_take_no_time(eta):
    sizes = np.random.default_rng(eta).integers(1, 40, 400).tolist()
    law = Law(60, 3, eta, 5.0, 1 / TICKS, lam=1.0, l_ref=10.0)
    rows = group_rows(drive(law, sizes)[0].ledger)
    log = [
        {"group_id": str(g), "sample": 0, "submit_t": t, "done_t": d, "status": "accepted" if d == d else "pending"}
        for g, t, d in zip(rows["group"], rows["launch"], rows["done"], strict=True)
    ]
    ledger = ledger_of(*log)
    assert can_infer(ledger)
    groups = inferred(ledger, 3).groups
    trained = rows["update"] >= 0
    assert groups.delay[: 60 * 3].tolist() != []
    by_row = groups.delay[groups.of_row]
    assert by_row[trained].tolist() == rows["delay"][trained].tolist()


def test_an_incomplete_last_batch_has_no_update():
    times = [{"group_id": str(i), "sample": 0, "submit_t": 0, "done_t": i + 1, "status": "accepted"} for i in range(5)]
    assert np.isfinite(inferred(ledger_of(*times), 2)["consumed_update"]).tolist() == [True] * 4 + [False]


def test_the_ledger_is_parquet_with_nulls_for_what_is_not_known(tmp_path):
    import pyarrow.parquet as pq

    ledger = ledger_of(*group("a", 5, 3, 10), {"tokens": 7, "submit_t": 0.5})
    write_ledger(tmp_path / "l.parquet", ledger, derived(ledger, None))
    read_back = pq.read_table(tmp_path / "l.parquet")
    assert read_back.column_names[: len(Row._fields)] == list(Row._fields)
    assert read_back.select(["group_id", "tokens", "submit_t", "version_start", "delay"]).to_pylist() == [
        {"group_id": "a", "tokens": 10, "submit_t": None, "version_start": 3, "delay": 2},
        {"group_id": None, "tokens": 7, "submit_t": 0.5, "version_start": None, "delay": None},
    ]
    assert str(read_back.schema.field("delay").type) == "int64"


def test_a_log_without_groups_counts_rows(tmp_path):
    write(tmp_path / "sessions.jsonl", session(0, 0))
    areal, _ = read("areal", tmp_path)
    assert summarise(areal, None, 4)["delay"] is None
    place = tmp_path / "step_3/effective/traces.jsonl"
    frozen, _ = read("prime_rl", write(place, episode(0, "g", None, 5)))
    assert table(frozen, "version_start", "consumed_update") == [(None, 2)]
