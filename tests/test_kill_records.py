"""SIGKILL between any two writes, and in the middle of one: the same bytes in the end as without.

The run's chunks hold groups that are consumed in different updates, so that pending files are half used.
"""

import functools
import importlib
import json
import os
import random
import signal
import time

import pytest
from settings import fingerprint, rows, run, small_config

from delaysim.run.records import ROWS

pytestmark = pytest.mark.slow

OVERRIDES = ("updates=10", "evaluation.every=4", "sampler.chunk=3", "clock.pilot=4", "C_gen=5")


def config(*overrides):
    return small_config(*OVERRIDES, *overrides, suite="simulated_async")


@pytest.fixture(scope="module")
def whole(base_cache, context, tmp_path_factory):
    """An uninterrupted run, and how long one takes once base, pilot and fork server are there."""
    for turn in ("warm", "timed"):
        path = tmp_path_factory.mktemp(turn) / "run"
        start = time.monotonic()
        process = context.Process(target=run, args=(config(), path))
        process.start()
        process.join()
        seconds = time.monotonic() - start
    return fingerprint(path), seconds


def die(*_arguments, **_keywords):
    os.kill(os.getpid(), signal.SIGKILL)


def die_at(target, when, count, path, **wanted):
    """Run until the `count`-th call of a function, and be killed before or after it; only calls with `wanted` count."""
    module, _, names = target.partition(":")
    *outer, name = names.split(".")
    holder = functools.reduce(getattr, outer, importlib.import_module(module))
    original, calls = getattr(holder, name), [0]

    def dying(*arguments, **keywords):
        calls[0] += wanted.get("name") in (None, *arguments)
        if calls[0] == count and when == "before":
            die()
        answer = original(*arguments, **keywords)
        if calls[0] == count:
            die()
        return answer

    setattr(holder, name, dying)
    run(config(), path)


def tear_row(name, count, path):
    """Be killed when half of the `count`-th append to a file has reached it."""
    from delaysim.run.records import RunDir

    append, calls = RunDir.append, [0]

    def torn(self, to, rows_):
        calls[0] += to == name
        if to == name and calls[0] == count:
            text = "".join(json.dumps(row) + "\n" for row in rows_)
            self._file(name).write(text[: len(text) // 2].encode().removesuffix(b"\n"))
            self._file(name).flush()
            die()
        append(self, to, rows_)

    RunDir.append = torn
    run(config(), path)


def killed(context, target, arguments, **keywords):
    process = context.Process(target=target, args=arguments, kwargs=keywords)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL, "the run ended before the place was reached"


@pytest.mark.parametrize(
    ("target", "when", "count"),
    [
        ("delaysim.run.checkpoint:Checkpoints.save_weights", "after", 1),
        ("delaysim.run.checkpoint:Checkpoints.save_weights", "after", 3),
        ("delaysim.run.pending:write_atomic", "before", 2),
        ("delaysim.run.pending:write_atomic", "after", 5),
        ("delaysim.run.pending:write_atomic", "after", 8),
        ("delaysim.run.checkpoint:Checkpoints.point", "before", 2),
        ("delaysim.run.checkpoint:Checkpoints.point", "after", 1),
        ("delaysim.run.checkpoint:Checkpoints.point", "after", 3),
        ("delaysim.run.pending:Pending.forget_consumed", "after", 2),
        ("delaysim.train.learner:Learner.update", "after", 4),
        ("delaysim.run.experiment:write_trace", "before", 1),
        ("delaysim.run.experiment:write_trace", "after", 1),
    ],
)
def test_killed_between_writes(target, when, count, whole, context, tmp_path):
    killed(context, die_at, (target, when, count, tmp_path / "run"))
    assert json.loads((tmp_path / "run/status.json").read_text())["state"] == "running"
    assert run(config("resume=must"), tmp_path / "run").state == "done"
    assert fingerprint(tmp_path / "run") == whole[0]


@pytest.mark.parametrize(
    ("name", "when"), [("manifest.json", "before"), ("manifest.json", "after"), ("moments.json", "after")]
)
def test_killed_beside_a_pointer_or_manifest(name, when, whole, context, tmp_path):
    killed(context, die_at, ("delaysim.run.records:RunDir.write", when, 1, tmp_path / "run"), name=name)
    assert run(config(), tmp_path / "run").state == "done"
    assert fingerprint(tmp_path / "run") == whole[0]


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("count", [1, 3])
def test_killed_in_the_middle_of_a_row(name, count, whole, context, tmp_path):
    path = tmp_path / "run"
    killed(context, tear_row, (name, count, path))
    assert not (path / f"{name}.jsonl").read_bytes().endswith(b"\n")
    assert run(config(), path).state == "done"
    assert fingerprint(path) == whole[0]


@pytest.mark.parametrize("seed", range(4))
def test_killed_again_and_again(seed, whole, context, tmp_path):
    """Eight kills on the way, each at a random instant."""
    rng, path = random.Random(seed), tmp_path / "run"
    reached = []
    for _ in range(8):
        process = context.Process(target=run, args=(config(), path))
        process.start()
        time.sleep(rng.uniform(0.2, 0.8) * whole[1])
        process.kill()
        process.join()
        pointer = path / "checkpoint.json"
        reached.append(json.loads(pointer.read_text())["update"] if pointer.exists() else 0)
    assert reached == sorted(reached), "a checkpoint is never lost"
    assert run(config(), path).state in ("done", "skipped")
    assert fingerprint(path) == whole[0]
    groups = [row["group"] for row in rows(path, "launches")]
    assert groups == sorted(set(groups))
    left = {p.name for p in path.rglob("*") if p.is_file() and p.suffix == ".safetensors"}
    assert {"model.safetensors", "optimiser.safetensors"} <= left
    assert len(list((path / "checkpoints").iterdir())) == 1
