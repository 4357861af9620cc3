"""The cached base: built once, checked when read, rebuilt when damaged, keyed by all it depends on."""

import multiprocessing
from dataclasses import replace

import pytest
import torch

from delaysim.policy.base import cached
from delaysim.policy.tiny import base_key, load_tiny
from delaysim.settings.models import TinyModelConf
from delaysim.tasks.chain import Chain

CONF = TinyModelConf(sft_steps=2)


def quiet(*_):
    pass


def weights(conf=CONF):
    return torch.cat([p.detach().flatten() for p in load_tiny(conf, Chain(), quiet).parameters()])


def test_a_damaged_base_is_built_again(tmp_path, monkeypatch):
    monkeypatch.setenv("DELAYSIM_CACHE", str(tmp_path))
    torch.set_num_threads(1)
    first = weights()
    (file,) = tmp_path.rglob("model.safetensors")
    good = file.read_bytes()
    for damage in (good[:1000], good[:-4] + b"\0\1\2\3", b""):
        file.write_bytes(damage)
        assert torch.equal(weights(), first)
        assert file.read_bytes() == good
    file.unlink()
    assert torch.equal(weights(), first)


def test_a_build_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("DELAYSIM_CACHE", str(tmp_path))

    def broken(folder):
        (folder / "half").write_text("x")
        raise RuntimeError

    for _ in range(2):
        with pytest.raises(RuntimeError):
            cached("kind", "key", broken)
    assert [p.name for p in (tmp_path / "kind").iterdir()] == ["key.lock"]
    place = cached("kind", "key", lambda folder: (folder / "whole").write_text("y"))
    assert (place / "whole").read_text() == "y"


def build(cache, count, barrier):
    import os

    os.environ["DELAYSIM_CACHE"] = cache

    def slow(folder):
        with count.get_lock():
            count.value += 1
        (folder / "file").write_text("built")

    barrier.wait()
    assert (cached("kind", "key", slow) / "file").read_text() == "built"


def test_processes_that_build_at_once_build_once(tmp_path):
    context = multiprocessing.get_context("fork")
    count, barrier = context.Value("i", 0), context.Barrier(4)
    processes = [context.Process(target=build, args=(str(tmp_path), count, barrier)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    assert count.value == 1


def test_the_key_holds_what_the_weights_depend_on():
    changes = [
        replace(CONF, seed=1),
        replace(CONF, sft_steps=3),
        replace(CONF, hidden_size=32),
        replace(CONF, sft_lr=1e-3),
    ]
    keys = {base_key(conf, Chain()) for conf in (CONF, *changes)} | {base_key(CONF, Chain(3, 5))}
    assert len(keys) == 6
    assert base_key(replace(CONF, seconds_per_update=9.0), Chain()) == base_key(CONF, Chain())
