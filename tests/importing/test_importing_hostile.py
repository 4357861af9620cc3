"""Broken and hostile logs: every line is a row or counted with its reason, and nothing is executed."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from importing.logs import episode, exported, output, read, reasons, session, table, trajectory, write

from delaysim.errors import UserError
from delaysim.importing import lines

GOOD = session(1, 1)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"task_id": 1, "sess', "not JSON"),
        (json.dumps(GOOD).encode() + b"\0" * 40, "NUL bytes"),
        (b'{"task_id": 1, "role": "\xff\xfe"}', "not UTF-8"),
        (b"[" * 200_000, "JSON nested too deeply"),
        (b'{"a":' * 200_000, "JSON nested too deeply"),
        (b'{"task_id": ' + b"9" * 5000 + b"}", "not JSON"),
        (b"[1, 2]", "not a JSON object"),
        (b'"' + b"x" * 2000 + b'"', "longer than 0 MiB"),
        (session(1, 2, status="=cmd|'/c calc'!A0"), "status is none of AReaL's"),
        (session(1, 2, status=["accepted"]), "status is not a name"),
        (session("1", 2), "task_id is not a whole number"),
        (session(True, 2), "task_id is not a whole number"),
        (session(1.5, 2), "task_id is not a whole number"),
        (session(-1, 2), "task_id is below 0 or too large"),
        (session(1, 10**40), "session_id is below 0 or too large"),
        (session(1, 2, submit=float("nan")), "submit_ts is not a finite number below 2^53"),
        (session(1, 2, end=float("inf")), "finalized_ts is not a finite number below 2^53"),
        (b'{"task_id": 1, "session_id": 2, "submit_ts": 1e999, "status": "accepted"}',
         "submit_ts is not a finite number below 2^53"),
        (session(1, 2, submit=5.0, end=4.0), "finalized_ts is before submit_ts"),
        ({"session_id": 3}, "task_id is missing"),
        ({}, "session_id is missing"),
        (GOOD, "id read before"),
    ],
)  # fmt: skip
def test_a_bad_line_costs_itself_and_is_counted(tmp_path, monkeypatch, line, reason):
    if reason.startswith("longer"):
        monkeypatch.setattr(lines, "LONGEST", 1000)
    path = write(tmp_path / "sessions.jsonl", GOOD, line, "", session(1, 9))
    ledger, tally = read("areal", path)
    assert table(ledger, "group_id", "sample") == [("0/1", 0), ("0/1", 1)]
    assert reasons(tally) == {reason: (1, 2)}
    assert tally.lines == 3


@pytest.mark.parametrize("length", [999, 1000, 1001, 1999, 2000, 2001, 5000])
def test_long_lines_are_passed_over_whole(tmp_path, monkeypatch, length):
    monkeypatch.setattr(lines, "LONGEST", 1000)
    long = json.dumps({**GOOD, "reason": ""})
    long = long.replace('"reason": ""', f'"reason": "{"x" * (length - len(long) - 1)}"')
    assert len(long) + 1 == length
    path = write(tmp_path / "sessions.jsonl", session(0, 0), long, session(2, 2))
    ledger, tally = read("areal", path)
    assert ledger.texts["group_id"] == ["0/0", *(["0/1"] if length <= 1000 else []), "0/2"]
    assert tally.skipped == (length > 1000)
    assert tally.lines == 3


def test_a_last_line_that_was_cut_off_says_so(tmp_path):
    path = write(tmp_path / "sessions.jsonl", GOOD)
    path.write_bytes(path.read_bytes() + b'{"task_id": 1')
    assert reasons(read("areal", path)[1]) == {"not JSON, a last line that was cut off": (1, 2)}


BAD = {
    "tinker": [
        (trajectory(2, 0, 0, 3, 5), "sampling_client_step is after iteration"),
        ({**trajectory(2, 0, 0, 1, 5), "steps": [{"ac_len": "5"}]}, "ac_len is not a whole number"),
        ({**trajectory(2, 0, 0, 1, 5), "steps": [5]}, "steps is not a list of objects"),
        ({**trajectory(2, 0, 0, 1, 5), "steps": [{}]}, "ac_len is missing"),
    ],
    "vllm": [
        ({"outputs": [output(0, [("3", 4)], token_ids=[1])]}, "weight_versions and token_ids differ in length"),
        (output(0, [("main", 4)]), "weight_versions: a label that does not end in a number"),
        (output(0, [], weight_versions=[{"version": "1", "start": 2, "end": 3}]), "weight_versions leave tokens out"),
        (output(0, [], weight_versions=[{"version": "1", "start": 0}]), "weight_versions: end is missing"),
        (output(0, [], weight_versions={"version": "1"}), "weight_versions is not a list of objects"),
        (output(0, [], token_ids="abc"), "token_ids is not a list"),
    ],
    "prime_rl": [
        (episode(7, "g", (4, 2), 5), "policy.end is before policy.start"),
        (episode(7, "g", (9, 9), 5), "policy.start is after the step"),
        ({**episode(7, "g", (1, 1), 5), "id": None}, "id is missing"),
        ({**episode(7, "g", (1, 1), 5), "run": 5}, "run is not an object"),
        ({**episode(7, "g", (1, 1), 5), "group": {"id": {}}}, "id is not a name"),
        (episode(7, "g", (1, 1), 5, work="eval"), "of an evaluation"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("name", "record", "reason"), [(n, *case) for n, cases in BAD.items() for case in cases])
def test_impossible_records_are_counted(tmp_path, name, record, reason):
    good = {"tinker": trajectory(2, 9, 0, 1, 5), "vllm": output(0, [("1", 3)]), "prime_rl": episode(0, "f", (1, 2), 5)}
    path = write(tmp_path / "rollouts/step_4/train/effective/traces.jsonl", good[name], record)
    ledger, tally = read(name, path)
    assert (len(ledger), reasons(tally)) == (1, {reason: (1, 2)})


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (exported(2, 1, 3, loss_mask=[0, 1]), "loss_mask is not a list of true and false"),
        (exported(0, 1, 3), "step is below 1"),
        (exported(2, 0, 3), "id read before"),
    ],
)
def test_impossible_exports_are_counted(tmp_path, record, reason):
    path = write(tmp_path / "token_exports/step_2/rank_0.jsonl", exported(2, 0, 5), record)
    ledger, tally = read("prime_rl", path)
    assert (ledger["tokens"].tolist(), reasons(tally)) == ([5], {reason: (1, 2)})


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (b'5,1\n"open,2\n7,3\n', "another number of cells than the header has"),
        (b"5,1\n6\n7,3\n", "another number of cells than the header has"),
        (b"5,1\n\xff,2\n7,3\n", "not UTF-8"),
        (b"5,1\nnan,2\n7,3\n", "tokens is not a whole number"),
        (b"5,1\n1e400,2\n7,3\n", "tokens is not a whole number"),
        (b"5,1\n=2+3,2\n7,3\n", "tokens is not a whole number"),
        (b"5,1\n1_0,2\n7,3\n", "tokens is not a whole number"),
        (b"5,1\n5,-2\n7,3\n", "consumed_update is below 0 or too large"),
    ],
)
def test_bad_cells_are_counted(tmp_path, rows, reason):
    path = tmp_path / "a.csv"
    path.write_bytes(b"tokens,consumed_update\n" + rows)
    ledger, tally = read("csv", path)
    assert ledger["tokens"].tolist()[0] == 5
    assert list(tally.reasons) == [reason]
    assert len(ledger) + tally.skipped <= tally.lines


def test_a_quote_that_never_closes_costs_the_lines_it_swallows_and_no_more(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b'tokens\n5\n"' + b"9\n" * 70_000)
    ledger, tally = read("csv", path)
    assert ledger["tokens"][0] == 5
    assert any(reason.startswith("not CSV (field larger") for reason in tally.reasons)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("nowhere.jsonl", "no such file or directory"),
        ("*.none", "no such file or directory"),
        ("empty", "has no sessions*.jsonl"),
        ("/dev/null", "is neither a file nor a directory"),
    ],
)
def test_places_without_a_log_are_named(tmp_path, place, message):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=message.replace("*", r"\*")):
        read("areal", place if place.startswith("/") else tmp_path / place)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
FIELDS = {
    "areal": session(1, 1), "tinker": trajectory(3, 1, 1, 2, 5), "vllm": output(0, [("1", 3)], request_id="a"),
    "prime_rl": episode(1, "g", (1, 2), 5), "csv": {"tokens": 4, "group_id": "a", "submit_t": "2023-01-01"},
}  # fmt: skip


@pytest.mark.parametrize("name", FIELDS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_value_in_any_field_is_a_row_or_a_reason(tmp_path_factory, name, data):
    record = dict(FIELDS[name])
    record[data.draw(st.sampled_from(sorted(record)))] = data.draw(json_values)
    place = tmp_path_factory.getbasetemp() / name / "step_9" / "effective" / "traces.jsonl"
    ledger, tally = read(name, write(place, FIELDS[name], json.dumps(record)))
    assert len(ledger) >= 1
    assert tally.skipped <= 1
