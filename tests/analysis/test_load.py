"""Run directories as frames."""

import numpy as np
import pytest
from settings import rows, run, small_config

from delaysim.analysis.load import load_runs
from delaysim.errors import UserError

GROUPS = {
    "run_id", "update", "group", "version", "delay", "length_max", "length_mean", "reward_mean", "ratio_mean", "kept",
}  # fmt: skip
UPDATES = {
    "update", "reward_mean", "delay_mean", "delay_max", "ess", "entropy", "grad_norm", "sim_time", "wall_s",
    "generate_s", "train_s", "tokens", "tokens_per_s",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(base_cache, tmp_path_factory):
    """Two runs."""
    root = tmp_path_factory.mktemp("runs")
    for delay in (0, 2):
        run(small_config(f"D={delay}", "estimator=gmc", "eps=0.1"), root / f"fixed_delay/d{delay}")
    return root


def test_frames_hold_every_row_and_the_promised_columns(folder):
    frames = load_runs(folder)
    runs, _, _, _ = frames
    assert runs[["run_id", "estimator", "eps", "D", "G", "B", "N", "seed"]].values.tolist() == [
        ["d0", "gmc", 0.1, 0, 4, 2, 8, 0],
        ["d2", "gmc", 0.1, 2, 4, 2, 8, 0],
    ]
    for name in ("updates", "groups", "evals"):
        assert len(getattr(frames, name)) == sum(len(rows(folder / f"fixed_delay/d{d}", name)) for d in (0, 2))
    assert set(frames.groups.columns) >= GROUPS
    assert set(frames.updates.columns) >= UPDATES


def test_columns_agree_with_each_other(folder):
    """What one file says of a mini-batch, another says too."""
    frames = load_runs(folder)
    by_update = frames.groups.groupby(["run_id", "update"])
    updates = frames.updates.set_index(["run_id", "update"])
    for column in ("reward_mean", "length_mean", "kept", "ratio_mean", "removed"):
        assert np.allclose(by_update[column].mean(), updates[column])
    assert (by_update.delay.max() == updates.delay_max).all()
    assert (frames.groups.delay == np.minimum(frames.groups["update"], frames.groups.run_id.str[1:].astype(int))).all()
    parts = updates[[c for c in updates if c.endswith("_s") and c not in ("wall_s", "tokens_per_s")]].sum(axis=1)
    assert np.allclose(parts, updates.wall_s)
    assert frames.runs.set_index("run_id").sim_time.to_dict() == updates.groupby("run_id").sim_time.max().to_dict()


def test_a_folder_without_runs_is_refused(tmp_path):
    with pytest.raises(UserError, match="no run directory here or below"):
        load_runs(tmp_path)


def test_another_schema_is_refused(folder, tmp_path):
    manifest = (folder / "fixed_delay/d0/manifest.json").read_text()
    (tmp_path / "manifest.json").write_text(manifest.replace('"schema": 2', '"schema": 99'))
    with pytest.raises(UserError, match="schema 99, this delaysim reads 2"):
        load_runs(tmp_path)
