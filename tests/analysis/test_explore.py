"""The notebook, headless: on runs, on one seed, on nothing."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scripts import script
from settings import run, small_config

from delaysim.analysis.load import load_runs
from delaysim.analysis.outcomes import load_outcomes

pytestmark = pytest.mark.slow
marimo = pytest.importorskip("marimo")
NOTEBOOK = Path(__file__).parents[2] / "analysis/explore.py"


@pytest.fixture(scope="module")
def folder(base_cache, tmp_path_factory):
    """Two estimators at two delays, one of them with two learning rates and two seeds at the larger delay."""
    root = tmp_path_factory.mktemp("runs") / "fixed_delay"
    for delay, *settings in ((0, "estimator=gmc"), (3, "estimator=gmc"), (3, "estimator=gmc", "seed=1"),
                             (3, "estimator=grpo"), (3, "estimator=grpo", "lr=1e-4")):  # fmt: skip
        run(small_config(f"D={delay}", *settings), root / "-".join([f"d{delay}", *settings]).replace("=", ""))
    return root


def values(folder, monkeypatch):
    """What the notebook's cells define when it is run over a folder."""
    monkeypatch.setattr(sys, "argv", ["explore.py", "--runs", str(folder)])
    _, defined = script("explore").app.run()
    return defined


def test_it_shows_what_the_runs_say(folder, monkeypatch):
    found = values(folder, monkeypatch)
    outcomes = {outcome.run_id: outcome for outcome in load_outcomes(folder).runs}
    table = found["runs"].set_index("run_id")
    assert table["final"].to_dict() == {name: outcome.final for name, outcome in outcomes.items()}
    assert table["method"].to_dict() == {
        "d0-estimatorgmc": "gmc",
        "d3-estimatorgmc": "gmc",
        "d3-estimatorgmc-seed1": "gmc",
        "d3-estimatorgrpo": "grpo:lr=0.0003",
        "d3-estimatorgrpo-lr1e-4": "grpo:lr=0.0001",
    }
    assert len(found["updates"]) == 8 * len(set(found["updates"]["run_id"]))
    tails = found["tails"].groupby("run_id")["groups"].sum()
    groups = load_runs(folder).groups.groupby("run_id").size()
    assert tails.to_dict() == groups[tails.index].to_dict()
    assert np.isfinite(found["tails"]["ess"]).all()


def test_it_runs_as_a_script(folder):
    subprocess.run([sys.executable, NOTEBOOK, "--runs", folder], check=True)


def test_it_exports_to_a_page(folder, tmp_path):
    page = tmp_path / "page.html"
    command = [sys.executable, "-m", "marimo", "export", "html", NOTEBOOK, "-o", page, "--", "--runs", folder]
    subprocess.run(command, check=True, capture_output=True)
    text = page.read_text()
    assert len(re.findall("data:image/png;base64", text)) == 3
    assert "5 finished runs" in text
    assert "One seed somewhere: no ranking can be read off this." in text
    assert "Traceback" not in text


def test_a_folder_without_runs_is_said_and_nothing_fails(tmp_path, monkeypatch):
    assert "runs" not in values(tmp_path, monkeypatch)
    page = tmp_path / "page.html"
    command = [sys.executable, "-m", "marimo", "export", "html", NOTEBOOK, "-o", page, "--", "--runs", tmp_path]
    subprocess.run(command, check=True, capture_output=True)
    assert "no run directory here or below" in page.read_text()
