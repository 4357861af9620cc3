"""`delaysim predict`: its table, json, csv, figure and messages."""

import csv
import io
import json
import re
from pathlib import Path

import pytest
from asked import finished

from delaysim.cli.predict import predict
from delaysim.errors import UserError
from delaysim.predict import join, simulate
from delaysim.predict.ask import Choice, sentence
from delaysim.predict.operation import COLOCATED, Cell, asynchronous
from delaysim.predict.simulate import Prediction, Shares

COSTS = ("--gpus", "4", "--B", "4", "--G", "4", "--lengths", "mean=100", "sigma=0", "--speed", "1=50", "8=200",
         "--trainer", "1=8", "--sync", "0.5", "--trainer-gpus", "2", "--eta", "3", "--price", "2")  # fmt: skip
"""Sixteen equal responses: on two GPUs 4 s, on four 3.5 s; training 4 s on two, 2 s on four."""
EXAMPLE = Path(__file__).parents[2] / "examples" / "predict" / "costs.yaml"


@pytest.fixture(autouse=True)
def few_responses(monkeypatch):
    monkeypatch.setattr(simulate, "RESPONSES", 400)


def test_json_has_every_number(capsys):
    assert predict([*COSTS, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    rows = {row["operation"]: row for row in found["predictions"]}
    assert list(rows) == ["colocated", "synchronous", "one-step-off", "async eta=3"]
    generation = 100 / (50 + 150 * 3 / 7) * 4
    assert rows["colocated"]["seconds_per_update"] == pytest.approx(generation + 2 + 0.5, rel=1e-5)
    assert rows["synchronous"]["seconds_per_update"] == pytest.approx(4 + 4 + 0.5, rel=1e-5)
    assert rows["async eta=3"]["seconds_per_update"] == pytest.approx(4.5, rel=1e-3)
    for row in rows.values():
        for gpus in ("trainer", "rollout"):
            assert sum(row[f"{gpus}_{part}"] for part in ("busy", "sync", "idle")) == pytest.approx(1)
        assert row["samples_per_hour"] == pytest.approx(16 * 3600 / row["seconds_per_update"])
        assert row["tokens_per_s"] == pytest.approx(1600 / row["seconds_per_update"])
        assert row["cost_per_update"] == pytest.approx(2 * 4 * row["seconds_per_update"] / 3600)
        assert row["seconds_bound"] <= row["seconds_per_update"] * 1.001
    assert [row["front"] for row in rows.values()] == [True, False, True, False], "eta=3 only adds delay here"
    assert found["costs"]["sources"]["speed"] == "given"


def test_csv_has_the_same_rows(capsys):
    predict([*COSTS, "--format", "json"])
    rows = json.loads(capsys.readouterr().out)["predictions"]
    predict([*COSTS, "--format", "csv"])
    table = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["operation"], float(row["delay_mean"])) for row in table] == [
        (row["operation"], row["delay_mean"]) for row in rows
    ]


def test_the_table_says_answer_inputs_and_assumption(capsys):
    predict(list(COSTS))
    text = capsys.readouterr().out
    assert "50 tokens/s with 1 response, 200 with 8; at most 8 at once" in text
    assert "8 s an update on 1 GPU" in text
    assert "other numbers of GPUs by assumption: linear scaling" in text
    assert "one-step-off on 2:2 makes 800 updates/h, 1.33 times all GPUs in turn, at a mean delay of 1\n" in text
    (row,) = re.findall(r"^. async eta=3 +2:2 +(.*)$", text.split("held by")[1], re.M)
    shares = [float(value) for value in row.split()[:6]]
    assert sum(shares[:3]) == pytest.approx(100, abs=0.2)
    assert sum(shares[3:]) == pytest.approx(100, abs=0.2)
    assert max(map(len, text.splitlines())) <= 120


def test_flags_win_over_the_file(capsys):
    predict([str(EXAMPLE), "--gpus", "2", "--trainer-gpus", "1", "--B", "2", "--eta", "2", "--format", "json"])
    found = json.loads(capsys.readouterr().out)
    assert (found["costs"]["B"], found["costs"]["G"], found["costs"]["slots"]) == (2, 8, 256)
    assert [row["operation"] for row in found["predictions"]][-1] == "async eta=2"
    assert found["costs"]["sources"] | {"B": "given", "sync": "costs.yaml"} == found["costs"]["sources"]


def test_a_trainers_csv_prices_the_work_asked_for(tmp_path, capsys):
    """Sixteen responses of 100 tokens are two steps of 800: 10 s on the four GPUs of the row."""
    path = tmp_path / "baselines.csv"
    path.write_text("num_gpus,model,seq_len,micro_batches,step_s_mean\n4,a,100,2,5.0\n4,b,100,2,9.0\n")
    costs = [*COSTS[: COSTS.index("--trainer")], *COSTS[COSTS.index("--sync") :]]
    for row in (("model=a", "gpus=4"), ("model=a,gpus=4",)):
        predict([*costs, "--trainer-csv", str(path), "--row", *row, "--format", "json"])
        found = json.loads(capsys.readouterr().out)
        assert found["costs"]["trainer"] == [[4.0, 10.0]]
        assert found["costs"]["sources"]["trainer"] == "baselines.csv (model=a, gpus=4)"
    with pytest.raises(UserError, match="2 rows fit; choose with --row model=VALUE: 'a', 'b'"):
        predict([*costs, "--trainer-csv", str(path)])


def test_accuracy_by_the_hour_stands_beside(monkeypatch, capsys):
    runs = [finished(final, seed, D=delay) for delay, final in ((0, 0.8), (4, 0.6)) for seed in (0, 1)]
    monkeypatch.setattr(join, "load_outcomes", lambda path: type("Read", (), {"runs": runs}))
    predict([*COSTS, "--runs", "runs", "--hours", "0.05", "--format", "csv"])
    rows = {row["operation"]: row for row in csv.DictReader(io.StringIO(capsys.readouterr().out))}
    updates = 0.05 * float(rows["async eta=3"]["updates_per_hour"])
    assert float(rows["async eta=3"]["accuracy_at_0.05h"]) == pytest.approx(0.2 + 0.4 * updates / 60)
    assert (rows["async eta=3"]["delay_of_runs"], rows["colocated"]["delay_of_runs"]) == ("4.0", "0.0")
    predict([*COSTS, "--runs", "runs"])
    assert "only delay links the two" in capsys.readouterr().out


def test_a_figure_says_the_answer(tmp_path, capsys):
    predict([*COSTS, "-o", str(tmp_path / "speed")])
    answer = re.findall(r"^.*times all GPUs in turn.*$", capsys.readouterr().out, re.M)[0]
    assert answer in (tmp_path / "speed.svg").read_text()
    assert (tmp_path / "speed.png").stat().st_size > 10_000


def test_the_answer_is_the_freshest_of_the_fast_ones():
    """Least delay within 5 % of the fastest; without one that is faster than taking turns, it says so."""
    turns, near, top = (
        made(*what) for what in ((COLOCATED, 60.0, 0), (asynchronous(4), 30.3, 4), (asynchronous(9), 30, 9))
    )
    assert sentence([turns, near, top]) == (
        "async eta=4 on 1:1 makes 118.8 updates/h, 1.98 times all GPUs in turn, at a mean delay of 4; "
        "nothing is 5 % faster"
    )
    assert sentence([turns, top]).startswith("async eta=9 on 1:1 makes 120 updates/h, 2.00 times all GPUs in turn")
    assert sentence([turns]) == "No operation is 5 % faster than all GPUs in turn: 60 updates/h without delay"


def made(operation, seconds, delay):
    shares = Shares(1.0, 0.0, 0.0)
    cell = Cell(operation, 2, 2) if operation.colocated else Cell(operation, 1, 1)
    one = Prediction(cell, seconds, 0.0, 64, 100.0, shares, shares, 1.0, delay, delay, delay)
    return Choice(one, True, "trainer", seconds)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no gpus: give it in the yaml file or as --gpus 32"),
        ((*COSTS, "--trainer", "5"), "cannot read 5"),
        ((*COSTS, "--trainer", "8=", "4=3"), "--trainer 8=: write KEY=VALUE, e.g. --trainer 8=60"),
        ((*COSTS, "--trainer", "8=x"), "trainer seconds of an update='x': give a number"),
        ((*COSTS, "--speed", "1=5", "1=6"), "speed: 1 responses at once stands there twice"),
        ((*COSTS, "--lengths", "mean"), "--lengths mean: write KEY=VALUE, e.g. --lengths mean=600"),
        ((*COSTS, "--row", "a=b"), "--row chooses from a csv: add --trainer-csv FILE"),
        ((*COSTS, "--hours", "0", "--runs", "x"), "--hours: '0' is not above 0"),
        ((*COSTS, "--runs", "nowhere"), "nowhere: no run directory here or below"),
        (("--calibrate", "nowhere"), "nowhere is not a run directory"),
        ((*COSTS, "--calibrate", "nowhere"), "drop --B and --G"),
        ((*COSTS, "--frobnicate"), "unrecognized arguments: --frobnicate"),
        (("none.yaml",), "cannot read none.yaml"),
    ],
)
def test_mistakes_are_one_line(arguments, message):
    with pytest.raises(UserError, match=message) as raised:
        predict(list(arguments))
    assert "\n" not in str(raised.value)


@pytest.mark.slow
def test_the_error_in_the_docs_is_what_the_command_prints(monkeypatch, capsys):
    monkeypatch.undo()
    assert predict(["--published"]) == 0
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    page = (EXAMPLE.parents[2] / "docs" / "predict.md").read_text()
    assert "\n".join(f"    {line}".rstrip() for line in printed) in page
