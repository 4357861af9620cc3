"""Run directories as outcomes, and the commands that compare them."""

import csv
import io
import json
import shutil

import numpy as np
import pytest
from settings import rows, run, small_config

from delaysim.__main__ import entry
from delaysim.accuracy import has_collapsed, summarise
from delaysim.analysis.outcomes import load_outcomes, planned
from delaysim.analysis.settings import run_settings
from delaysim.analysis.stats import crossed
from delaysim.errors import UserError
from delaysim.files import read_json

pytestmark = pytest.mark.slow
CELLS = [(d, e, s) for d in (0, 2) for e in ("grpo", "gmc") for s in (0, 1)]


@pytest.fixture(scope="module")
def folder(base_cache, tmp_path_factory):
    """Two losses, two delays, two seeds."""
    root = tmp_path_factory.mktemp("runs")
    for d, e, s in CELLS:
        run(small_config(f"D={d}", f"estimator={e}", f"seed={s}", "lr=0.01"), root / f"{e}-{d}-{s}")
    return root


def by_name(folder):
    return {outcome.run_id: outcome for outcome in load_outcomes(folder).runs}


def test_scores_are_those_of_the_rows(folder):
    for name, outcome in by_name(folder).items():
        evals = rows(folder / name, "evals")
        history = summarise(evals)
        assert np.allclose(outcome.curve, [accuracy.pass1 for accuracy in history])
        assert np.allclose(outcome.greedy, [accuracy.greedy for accuracy in history])
        last = [row for row in evals if row["update"] == 8 and not row["greedy"]]
        share = {p: np.mean([row["correct"] for row in last if row["problem"] == p]) for p in outcome.problems}
        assert outcome.shares[-1].tolist() == list(share.values())
        assert outcome.final == pytest.approx(np.mean([accuracy.pass1 for accuracy in history[1:]]))
        assert outcome.collapsed == has_collapsed(history, 3, 2.0)


def test_axes_are_sums_over_the_updates(folder):
    for name, outcome in by_name(folder).items():
        updates = rows(folder / name, "updates")
        assert outcome.axes["updates"].tolist() == [0, 4, 8]
        assert outcome.axes["trajectories"].tolist() == [0, 32, 64]
        assert outcome.axes["tokens"].tolist() == [0, *(sum(r["tokens"] for r in updates[:n]) for n in (4, 8))]
        assert outcome.axes["sim_time"].tolist() == [0, updates[3]["sim_time"], updates[7]["sim_time"]]
        assert outcome.time_per_update == updates[-1]["sim_time"] / 8


def test_settings_say_all_that_tells_two_runs_apart_but_the_seed(folder):
    told = {tuple(sorted(map(str, outcome.settings.items()))) for outcome in by_name(folder).values()}
    assert len(told) == 4
    settings = by_name(folder)["gmc-2-0"].settings
    assert {key: settings[key] for key in ("suite", "estimator", "D", "eps", "G", "B", "N", "lr", "model", "task")} == {
        "suite": "fixed_delay", "estimator": "gmc", "D": 2, "eps": 0.28, "G": 4, "B": 2, "N": 8, "lr": 0.01,
        "model": "tiny", "task": "chain",
    }  # fmt: skip


def test_a_rule_beside_a_loss_is_part_of_its_name(folder):
    identity = read_json(folder / "grpo-0-0/manifest.json")["identity"] | {"rule": {"name": "gac", "cos": 0.3}}
    assert run_settings(folder, identity)["estimator"] == "grpo+gac"


def test_evaluations_that_a_collapsed_run_never_reached_count_zero(folder, tmp_path):
    path = tmp_path / "gmc-2-0"
    shutil.copytree(folder / "gmc-2-0", path)
    whole = rows(path, "evals")
    (path / "evals.jsonl").write_text("".join(json.dumps(row) + "\n" for row in whole if row["update"] < 8))
    lines = (path / "updates.jsonl").read_text().splitlines(keepends=True)
    (path / "updates.jsonl").write_text("".join(lines[:6]))
    status = read_json(path / "status.json") | {"state": "collapsed"}
    (path / "status.json").write_text(json.dumps(status))
    (outcome,) = load_outcomes(path).runs
    kept = by_name(folder)["gmc-2-0"]
    assert outcome.collapsed
    assert outcome.shares[:2].tolist() == kept.shares[:2].tolist()
    assert not outcome.shares[2].any()
    assert outcome.final == pytest.approx(kept.curve[1] / 2)
    assert outcome.total("tokens") == sum(json.loads(line)["tokens"] for line in lines[:6])


def test_unfinished_runs_are_named_and_left_out(folder, tmp_path):
    for state in ("interrupted", "done"):
        shutil.copytree(folder / "gmc-2-0", tmp_path / state)
        (tmp_path / state / "status.json").write_text(json.dumps({"state": state}))
    found = load_outcomes(tmp_path)
    assert [outcome.run_id for outcome in found.runs] == ["done"]
    assert found.unfinished == {"interrupted": "interrupted"}
    with pytest.raises(UserError, match="no finished run here or below"):
        load_outcomes(tmp_path / "interrupted")


@pytest.mark.parametrize(
    ("n", "every", "expected"), [(8, 4, [0, 4, 8]), (9, 4, [0, 4, 8, 9]), (3, None, [0, 3]), (2, 5, [0, 2])]
)
def test_planned_evaluations(n, every, expected):
    assert planned(n, every) == expected


def test_compare_prints_what_the_statistics_say(folder, capsys):
    assert entry(["compare", str(folder), "--by", "estimator", "--at", "D", "--format", "csv"]) == 0
    table = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    runs = by_name(folder)
    scores = {(e, d): np.stack([runs[f"{e}-{d}-{s}"].scores for s in (0, 1)]) for d, e, _ in CELLS}
    assert [row["D"] for row in table] == ["0 to 2", "0", "2"]
    for row in table[1:]:
        expected = crossed(scores["gmc", int(row["D"])] - scores["grpo", int(row["D"])])
        assert [float(row[key]) for key in ("difference", "low", "high")] == pytest.approx(
            [expected.mean, expected.low, expected.high]
        )
        assert row["seeds"] == "2"
    area = crossed((scores["gmc", 0] - scores["grpo", 0] + scores["gmc", 2] - scores["grpo", 2]) / 2)
    assert float(table[0]["difference"]) == pytest.approx(area.mean)


def test_at_delay_zero_all_losses_are_one_run(folder, capsys):
    entry(["compare", str(folder), "--at", "D=0", "--format", "json"])
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["difference"], row["p_holm"], row["verdict"]) == (0, None, "identical")


def test_one_seed_prints_no_ranking_and_says_why(folder, tmp_path, capsys):
    for d, e in ((0, "grpo"), (2, "grpo"), (0, "gmc"), (2, "gmc")):
        shutil.copytree(folder / f"{e}-{d}-0", tmp_path / f"{e}-{d}")
    for command in (["compare"], ["budget", "--tolerance", "0.5"]):
        assert entry([command[0], str(tmp_path), *command[1:]]) == 0
        text = capsys.readouterr().out
        assert "one seed says nothing of how the next would differ: run seed=0,1,2 or more" in text
        assert " better" not in text
        assert "affords" not in text
        assert "yes" not in text


def test_budget_rows(folder, capsys):
    assert entry(["budget", str(folder), "--tolerance", "0.02", "--format", "json"]) == 0
    table = json.loads(capsys.readouterr().out)
    runs = by_name(folder)
    assert [(row["estimator"], row["D"]) for row in table] == [("gmc", 0), ("gmc", 2), ("grpo", 0), ("grpo", 2)]
    for row in table:
        of = [np.stack([runs[f"{row['estimator']}-{d}-{s}"].scores for s in (0, 1)]) for d in (row["D"], 0)]
        loss = crossed(of[0] - of[1])
        assert (row["difference"], row["low"]) == pytest.approx((loss.mean, loss.low))
        assert row["affordable"] == (loss.low > -0.02 or row["D"] == 0)
    assert table[1]["time_per_update"] == pytest.approx(runs["gmc-2-0"].time_per_update)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "{}", "--by", "lr"], "nothing to compare: no two values of lr share"),
        (["compare", "{}", "--against", "tic"], "--against tic: none of gmc, grpo"),
        (["compare", "{}", "--where", "D"], "--where D: write KEY=VALUE"),
        (["compare", "{}", "--looks", "3,5"], "--looks 3,5: these runs have 2 seeds"),
        (["budget", "{}", "--tolerance", "0"], "--tolerance 0: give the loss you accept"),
        (["budget", "{}", "--where", "D=2"], "gmc has no run at D=0"),
        (["compare", "{}/nowhere"], "no run directory here or below"),
    ],
)
def test_errors_are_one_line_that_says_what_to_type(folder, capsys, arguments, message):
    assert entry([text.format(folder) for text in arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_comparing_needs_no_torch(folder):
    import subprocess
    import sys

    code = f"import sys; from delaysim.__main__ import entry; entry(['compare', {str(folder)!r}])"
    subprocess.run(
        [sys.executable, "-c", f"{code}; assert 'torch' not in sys.modules"], check=True, capture_output=True
    )
