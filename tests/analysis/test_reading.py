"""The snippets of docs/records.md, as they stand there, on real runs: they agree with load_runs and with each other."""

import json
import re
import shutil
from pathlib import Path

import pytest
from settings import run, small_config

from delaysim.analysis.load import load_runs

pytestmark = pytest.mark.slow
pytest.importorskip("duckdb")
RECORDS = Path(__file__).parents[2] / "docs/records.md"
RUNS = {"d0": ("D=0",), "d2": ("D=2", "estimator=gmc"), "d3": ("D=3", "evaluation.samples=1")}


@pytest.fixture(scope="module")
def folder(base_cache, tmp_path_factory):
    """Three runs."""
    root = tmp_path_factory.mktemp("reading")
    for name, settings in RUNS.items():
        run(small_config(*settings), root / "runs/fixed_delay" / name)
        mark(root / "runs/fixed_delay" / name / "evals.jsonl")
    return root


def mark(evals):
    """Two in seven responses right: so small a model gets nothing right by itself."""
    table = [json.loads(line) for line in evals.read_text().splitlines()]
    evals.write_text("".join(json.dumps({**row, "correct": i % 7 < 2}) + "\n" for i, row in enumerate(table)))


def shown(folder, monkeypatch):
    """What the snippets define."""
    monkeypatch.chdir(folder)
    blocks = re.findall(r"```python\n(.*?)```", RECORDS.read_text().split("## Reading")[1], re.DOTALL)
    assert len(blocks) == 3
    names = {}
    for block in blocks:
        exec(block, names)
    return names


def test_the_snippets_agree(folder, monkeypatch):
    names = shown(folder, monkeypatch)
    frames = load_runs(folder / "runs")
    pass1 = names["pass1"].set_index(["run_id", "update"])["pass1"]
    assert len(pass1) == 3 * len(RUNS)
    assert 0 < pass1.min() < pass1.max() < 1
    assert pass1.to_dict() == pytest.approx(names["accuracy"].to_dict())
    worst = frames.updates.groupby("run_id").ratio_max.max()
    assert names["worst_ratio"].to_dict() == worst.to_dict()
    table = names["by_estimator"]
    assert table[["estimator", "D", "seed"]].values.tolist() == [["gmc", 2, 0], ["grpo", 0, 0], ["grpo", 3, 0]]
    assert table["worst_ratio"].tolist() == [worst["d2"], worst["d0"], worst["d3"]]
    moments = frames.runs.set_index("run_id").delay_mean
    assert names["mean_delay"].to_dict() == pytest.approx(moments.to_dict())
    assert names["delays"].set_index("run_id")["mean"].to_dict() == pytest.approx(moments.to_dict())


def test_a_torn_last_line_is_left_out(folder, monkeypatch, tmp_path):
    """As of a run under way; the snippets of whole runs need not survive it."""
    shutil.copytree(folder / "runs", tmp_path / "runs")
    with (tmp_path / "runs/fixed_delay/d2/evals.jsonl").open("a") as file:
        file.write('{"update":8,"problem":"x","gree')
    (tmp_path / "runs/fixed_delay/d2/trace.parquet").unlink()
    whole, torn = shown(folder, monkeypatch)["pass1"], shown(tmp_path, monkeypatch)["pass1"]
    assert torn.equals(whole)
