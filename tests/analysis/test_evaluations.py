"""Evaluations of runs compared: sets side by side, each problem alike and each set alike."""

import csv
import io
import json

import numpy as np
import pytest
from fabricated import SETTINGS

from delaysim.__main__ import entry
from delaysim.analysis.evaluations import load_evaluations
from delaysim.analysis.stats import over_sets
from delaysim.errors import UserError

SIZES = {"large": 40, "small": 5}
rng = np.random.default_rng(0)


def evaluation(folder, scores, seed, **settings):
    """A folder as `delaysim evaluate --n 2` leaves it: `scores` has (problems, 3) per set, the greedy one first."""
    folder.mkdir(parents=True)
    rows = [
        {
            "set": name,
            "problem": str(i),
            "cluster": f"{name}{i // 2}",
            "response": r,
            "greedy": r == 0,
            "score": float(s),
        }
        for name, table in scores.items()
        for i, of in enumerate(table)
        for r, s in enumerate(of)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    identity = {"sets": dict.fromkeys(scores, "x"), "samples": 2, "mode": "strict", "model": {"update": 60}}
    of = {"run": folder.name, "seed": seed, "settings": SETTINGS | settings}
    (folder / "evaluation.json").write_text(json.dumps({"schema": 1, "identity": identity, "of": of}))


@pytest.fixture
def folder(tmp_path):
    """Three seeds of two losses; what they scored."""
    tables = {}
    for name, level in (("gmc", 0.6), ("tic", 0.4)):
        for seed in range(3):
            tables[name, seed] = {of: rng.uniform(size=(size, 3)) < level for of, size in SIZES.items()}
            evaluation(tmp_path / f"{name}{seed}", tables[name, seed], seed, estimator=name)
    return tmp_path, tables


def gaps(tables):
    mean = {key: {of: table[:, 1:].mean(1) for of, table in found.items()} for key, found in tables.items()}
    return {of: np.stack([mean["gmc", s][of] - mean["tic", s][of] for s in range(3)]) for of in SIZES}


def test_both_means_are_those_of_the_statistics(folder, capsys):
    root, tables = folder
    assert entry(["compare", str(root), "--benchmarks", "--format", "csv"]) == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    expected = over_sets(gaps(tables), {of: [f"{of}{i // 2}" for i in range(size)] for of, size in SIZES.items()})
    for column, estimate in (("", expected.item_weighted), ("macro", expected.macro)):
        names = (f"{column}_low", f"{column}_high") if column else ("low", "high")
        assert [float(row[n]) for n in (column or "difference", *names)] == pytest.approx(
            [estimate.mean, estimate.low, estimate.high]
        )
    assert {of: float(row[f"difference_{of}"]) for of in SIZES} == pytest.approx(
        {of: table.mean() for of, table in gaps(tables).items()}
    )


def test_the_table_shows_them_side_by_side(folder, capsys):
    entry(["compare", str(folder[0]), "--benchmarks"])
    text = capsys.readouterr().out
    for words in (
        "45 problems of large, small",
        "item-weighted: each problem alike",
        "macro: each set alike",
        "gmc - tic",
    ):
        assert words in text


def test_greedy_answers_count_where_none_were_sampled(tmp_path):
    table = {"large": np.array([[1], [0], [1]])}
    evaluation(tmp_path / "a", table, 0)
    (run,) = load_evaluations(tmp_path)
    assert run.scores.tolist() == [1, 0, 1]


def test_evaluations_of_models_are_no_runs(folder, tmp_path):
    path = folder[0] / "gmc0/evaluation.json"
    manifest = json.loads(path.read_text())
    del manifest["of"]
    path.write_text(json.dumps(manifest))
    assert len(load_evaluations(folder[0])) == 5
    with pytest.raises(UserError, match="no evaluation of a run here or below"):
        load_evaluations(folder[0] / "gmc0")


def test_evaluations_on_other_problems_do_not_compare(folder, capsys):
    evaluation(folder[0] / "more", {"large": np.ones((3, 3))}, 7, estimator="gmc")
    assert entry(["compare", str(folder[0]), "--benchmarks"]) == 2
    assert "asked.sets is large and large,small; choose with" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("setting", "changed"),
    [
        ("sampler", {"sampler": {"kind": "vllm", "precision": "float32"}}),
        ("max_new_tokens", {"max_new_tokens": 4096}),
        ("rel_tol", {"rel_tol": {"large": 0.01, "small": 0.0}}),
        ("template", {"model": {"update": 60, "template": "plain"}}),
    ],
)
def test_evaluations_asked_otherwise_do_not_compare(folder, capsys, setting, changed):
    for path in folder[0].glob("tic*/evaluation.json"):
        manifest = json.loads(path.read_text())
        manifest["identity"] |= changed
        path.write_text(json.dumps(manifest))
    assert entry(["compare", str(folder[0]), "--benchmarks"]) == 2
    error = capsys.readouterr().err
    assert (error.count("\n"), f"not asked alike: asked.{setting} is" in error) == (1, True)


def test_areas_over_a_grid_know_sets_and_clusters_too(tmp_path, capsys):
    """Two delays: the primary endpoint is the mean of both, over the same strata and clusters as each."""
    tables = {}
    for name, level in (("gmc", 0.6), ("tic", 0.4)):
        for seed in range(3):
            for delay in (0, 8):
                table = {of: rng.uniform(size=(size, 3)) < level for of, size in SIZES.items()}
                evaluation(tmp_path / f"{name}{seed}{delay}", table, seed, estimator=name, D=delay)
                tables[name, seed, delay] = {of: answers[:, 1:].mean(1) for of, answers in table.items()}
    entry(["compare", str(tmp_path), "--benchmarks", "--at", "D", "--alpha", "0.1", "--format", "csv"])
    row = next(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    gap = {
        of: np.stack(
            [np.mean([tables["gmc", s, d][of] - tables["tic", s, d][of] for d in (0, 8)], 0) for s in range(3)]
        )
        for of in SIZES
    }
    labels = {of: [f"{of}{i // 2}" for i in range(size)] for of, size in SIZES.items()}
    expected = over_sets(gap, labels, confidence=0.9)
    found = [float(row[key]) for key in ("difference", "low", "high", "macro", "macro_low", "macro_high")]
    both = [(e.mean, e.low, e.high) for e in (expected.item_weighted, expected.macro)]
    assert found == pytest.approx([*both[0], *both[1]])


def test_an_evaluation_has_no_curve(folder, capsys):
    assert entry(["compare", str(folder[0]), "--benchmarks", "--endpoint", "area"]) == 2
    assert "an evaluation has no curve" in capsys.readouterr().err
