"""SIGKILL at any instant, then the same command again: the same bytes as without."""

import json
import os
import random
import signal
import time
from pathlib import Path

import pytest
from policies import COUPLED, POLICIES
from settings import fingerprint, run, small_config

pytestmark = pytest.mark.slow

CASES = {
    "fixed": (("D=3", "updates=12"), "fixed_delay"),
    "coupled": (("updates=12", "clock.pilot=4", "C_gen=5"), "simulated_async"),
    "policies": ((*COUPLED, *POLICIES["all"]), "simulated_async"),
}


def config(case):
    overrides, suite = CASES[case]
    return small_config(*overrides, suite=suite)


@pytest.fixture(scope="module")
def whole(base_cache, context, tmp_path_factory):
    """Uninterrupted runs: their fingerprints, and how long each takes once base, pilot and fork server are there."""
    found = {}
    for case in CASES:
        for turn in ("warm", "timed"):
            path = tmp_path_factory.mktemp(case) / turn
            start = time.monotonic()
            process = context.Process(target=run, args=(config(case), path))
            process.start()
            process.join()
            found[case] = fingerprint(path), time.monotonic() - start
    return found


def finish_and_compare(case, path, whole):
    assert run(config(case), path).state in ("done", "skipped")
    assert fingerprint(path) == whole[case][0]


@pytest.mark.parametrize("instant", range(30))
def test_killed_at_a_random_instant(instant, whole, context, tmp_path):
    case = "policies" if instant >= 24 else "coupled" if instant % 4 == 3 else "fixed"
    rng, path = random.Random(instant), tmp_path / "run"
    for _ in range(2):  # killed twice, the second time while it resumes
        process = context.Process(target=run, args=(config(case), path))
        process.start()
        time.sleep(rng.uniform(0.05, 0.95) * whole[case][1])
        process.kill()
        process.join()
    finish_and_compare(case, path, whole)


def die_at(place: str, count: int, case: str, path: Path) -> None:
    """Run until the `count`-th call of a function, and be killed inside it."""
    import delaysim.run.checkpoint
    import delaysim.run.evaluate
    import delaysim.run.rollouts
    import delaysim.tensors
    import delaysim.train.scoring

    module, name = {
        "generation": (delaysim.run.rollouts, "Draw"),
        "evaluation": (delaysim.run.evaluate, "Draw"),
        "update": (delaysim.train.scoring, "score_packs"),
        "checkpoint": (delaysim.tensors, "save_file"),
        "pointer": (delaysim.run.checkpoint, "write_json"),
        "pilot": (delaysim.run.rollouts, "Draw"),
    }[place]
    original, calls = getattr(module, name), [0]

    def dying(*arguments, **keywords):
        calls[0] += 1
        if calls[0] == count:
            if place == "checkpoint":
                original(*arguments, **keywords)
                file = Path(arguments[1])
                file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments, **keywords)

    setattr(module, name, dying)
    if place == "pilot":
        os.environ["DELAYSIM_CACHE"] = str(path.parent / "cache")
    run(config(case), path)


@pytest.mark.parametrize(
    ("place", "count", "case"),
    [
        ("generation", 3, "fixed"),
        ("generation", 11, "fixed"),
        ("generation", 20, "coupled"),
        ("update", 1, "fixed"),
        ("update", 8, "coupled"),
        ("evaluation", 1, "fixed"),
        ("evaluation", 2, "fixed"),
        ("checkpoint", 1, "fixed"),
        ("checkpoint", 4, "fixed"),
        ("pointer", 2, "fixed"),
        ("pilot", 2, "coupled"),
        ("generation", 14, "policies"),
        ("checkpoint", 7, "policies"),
        ("pointer", 3, "policies"),
    ],
)
def test_killed_in_a_place(place, count, case, whole, context, tmp_path):
    path = tmp_path / "run"
    if place == "pilot":
        copy_base(tmp_path / "cache")
    process = context.Process(target=die_at, args=(place, count, case, path))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    finish_and_compare(case, path, whole)


def copy_base(cache):
    import shutil

    shutil.copytree(Path(os.environ["DELAYSIM_CACHE"]) / "base", cache / "base")


def build_and_die(cache: str, step: int) -> None:
    import delaysim.policy.tiny as tiny

    os.environ["DELAYSIM_CACHE"] = cache
    original = tiny.demonstrations

    def dying(conf, task, at):
        if at == step:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(conf, task, at)

    tiny.demonstrations = dying
    run(config("fixed"), Path(cache) / "run")


def test_killed_while_the_base_is_built(whole, context, tmp_path, monkeypatch):
    process = context.Process(target=build_and_die, args=(str(tmp_path), 20))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert not list(tmp_path.rglob("model.safetensors"))
    monkeypatch.setenv("DELAYSIM_CACHE", str(tmp_path))
    finish_and_compare("fixed", tmp_path / "run", whole)


def test_kills_do_hit(whole, context, tmp_path):
    """At several of these instants a run is neither absent nor done: otherwise those above prove nothing."""
    states = []
    for tenths in range(2, 9):
        path = tmp_path / str(tenths)
        process = context.Process(target=run, args=(config("fixed"), path))
        process.start()
        time.sleep(tenths / 10 * whole["fixed"][1])
        process.kill()
        process.join()
        status = path / "status.json"
        states.append(json.loads(status.read_text()).get("state") if status.exists() else None)
    assert states.count("running") >= 2
