"""Checkpoints in files of bounded size, whole or refused, without the optimiser where a run is finished."""

import pytest
import torch
from learners import make, moments, rule, stale_groups, tiny_base, weights_of
from safetensors.torch import load_file
from settings import run, small_config

from delaysim import tensors
from delaysim.errors import RunFailed
from delaysim.run.checkpoint import Checkpoints, Pointer
from delaysim.tensors import load_shards, save_shards

ONE_FILE, MANY_FILES = tensors.SHARD_BYTES, 50_000


@pytest.fixture(scope="module")
def base(base_cache):
    return tiny_base()


def test_tensors_are_split_in_order_and_read_back(tmp_path, monkeypatch):
    monkeypatch.setattr(tensors, "SHARD_BYTES", 100)
    wanted = {f"t{i}": torch.arange(i, dtype=torch.float32) for i in (10, 15, 30, 1, 2, 20)}
    save_shards(wanted, tmp_path, "model")
    assert [sorted(shard) for shard in load_shards(tmp_path, "model")] == [
        ["t10", "t15"], ["t30"], ["t1", "t2", "t20"],
    ]  # fmt: skip
    found = {name: tensor for shard in load_shards(tmp_path, "model") for name, tensor in shard.items()}
    assert all(torch.equal(found[name], tensor) for name, tensor in wanted.items())
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"model-0000{i}-of-00003.safetensors" for i in (1, 2, 3)
    ]


def test_no_copy_larger_than_a_file_is_made(tmp_path, monkeypatch):
    """Every file is written on its own, from at most its own tensors."""
    monkeypatch.setattr(tensors, "SHARD_BYTES", 1000)
    written = []
    monkeypatch.setattr(tensors, "save_tensors", lambda shard, _: written.append(sum(t.nbytes for t in shard.values())))
    save_shards({f"t{i}": torch.zeros(60) for i in range(40)}, tmp_path, "model")
    assert written == [960] * 10


def saved(base, folder, monkeypatch, limit):
    """A checkpoint of a learner after one update, with its pointer."""
    monkeypatch.setattr(tensors, "SHARD_BYTES", limit)
    learner = make(base, rule=rule("gac"))
    learner.update(7, stale_groups(base))
    checkpoints = Checkpoints(folder)
    pointer = Pointer(1, checkpoints.save_weights(1, base, learner.optimiser_state()), {})
    return checkpoints, pointer, learner


@pytest.mark.parametrize("limit", [ONE_FILE, MANY_FILES])
def test_a_checkpoint_restores_weights_moments_and_the_remembered_gradient(base, tmp_path, monkeypatch, limit):
    checkpoints, pointer, learner = saved(base, tmp_path, monkeypatch, limit)
    files = len(list((tmp_path / pointer.weights).iterdir()))
    assert files == 2 if limit == ONE_FILE else files > 20
    other = tiny_base()
    restored = make(other, rule=rule("gac"))
    checkpoints.load(pointer, other, restored)
    assert torch.equal(weights_of(other), weights_of(base))
    found, wanted = moments(restored), moments(learner)
    assert found.keys() == wanted.keys()
    assert "previous_gradient" in wanted
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)


@pytest.mark.parametrize("stem", ["model", "optimiser"])
@pytest.mark.parametrize("limit", [ONE_FILE, MANY_FILES])
def test_a_missing_or_torn_file_is_refused(base, tmp_path, monkeypatch, stem, limit):
    checkpoints, pointer, _ = saved(base, tmp_path, monkeypatch, limit)
    last = max((tmp_path / pointer.weights).glob(f"{stem}*"))
    whole = last.read_bytes()
    other = tiny_base()
    for damage in (None, whole[:-100]):
        last.unlink(missing_ok=True)
        if damage is not None:
            last.write_bytes(damage)
        with pytest.raises(RunFailed, match=r"cannot be read .*: resume=never starts over"):
            checkpoints.load(pointer, other, make(other))


@pytest.mark.slow
def test_a_finished_run_may_leave_its_optimiser_behind(base_cache, tmp_path, monkeypatch):
    cfg = small_config("D=1", "checkpoint.finished_optimiser=false")
    assert run(cfg, tmp_path / "run").state == "done"
    (folder,) = (tmp_path / "run/checkpoints").iterdir()
    assert load_file(folder / "optimiser.safetensors") == {}
    run(small_config("D=1"), tmp_path / "other")
    (other,) = (tmp_path / "other/checkpoints").iterdir()
    assert (folder / "model.safetensors").read_bytes() == (other / "model.safetensors").read_bytes()
    assert len(load_file(other / "optimiser.safetensors")) > 60
