"""A run's id holds what decides its rows, by value, and nothing else."""

import json
from dataclasses import fields, is_dataclass
from functools import cache

import pytest
from settings import make_config

from delaysim.settings import identity
from delaysim.settings.identity import run_id, run_path
from delaysim.settings.models import EXPERTS_IMPLEMENTATIONS

FIXED, COUPLED = "fixed_delay", "simulated_async"


@cache
def name(*overrides, suite=FIXED):
    return run_id(make_config(*overrides, suite=suite))


@pytest.mark.parametrize(
    ("suite", "one", "other"),
    [
        (FIXED, ("eps=0.1",), ("estimator.eps=0.1",)),
        (FIXED, ("eps=0.1",), ("eps=1e-1",)),
        (FIXED, ("eps=1",), ("eps=1.0",)),
        (FIXED, ("eps=0.2",), ()),
        (FIXED, ("estimator=gmc", "eps=0.28"), ("estimator=gmc",)),
        (FIXED, ("lr=1e-4",), ("learner.lr=0.0001",)),
        (FIXED, ("lr=1e-4", "learner.lr=2e-4"), ("lr=2e-4",)),
        (FIXED, ("D=3", "C_gen=5"), ("clock.C_gen=5.0", "D=3")),
        (FIXED, ("D=3", "C_update=2"), ("D=3", "clock.C_update=2.0")),
        (COUPLED, ("lam=2",), ("clock.lam=2.0",)),
        (COUPLED, ("lam=1",), ()),
        (COUPLED, ("clock.L_ref=20",), ("clock.L_ref=20.0",)),
        (FIXED, ("seed=0", "G=8", "B=8", "updates=240"), ()),
        (FIXED, ("sampler.temperature=1",), ("sampler.temperature=1.0",)),
    ],
)
def test_one_meaning_is_one_id(suite, one, other):
    assert name(*one, suite=suite) == name(*other, suite=suite)


@pytest.mark.parametrize(
    "override",
    [
        "display=quiet",
        "sinks=[wandb,tensorboard]",
        "threads=2",
        "resume=must",
        "resume=never",
        "devices=[cuda:0]",
        "plan.memory_gb=80",
        "checkpoint.every=3",
        "runs_dir=/elsewhere",
        "model.seconds_per_update=9",
        "lengths.mean=100",
        "clock.pilot=7",
        "clock.L_ref=20.5",
        "clock.t_min=0.5",
    ],
)
def test_what_no_row_depends_on_is_left_out(override):
    assert name(override) == name()


CHANGES = {
    FIXED: [
        "D=4",
        "G=4",
        "B=4",
        "updates=9",
        "seed=1",
        "lr=1e-5",
        "eps=0.3",
        "C_gen=5",
        "C_update=2",
        "clock.workers=9",
        "estimator=tic",
        "estimator=is",
        "model.seed=1",
        "model.layers=1",
        "task.max_terms=5",
        "sampler.temperature=0.9",
        "sampler.max_new_tokens=9",
        "sampler.chunk=4",
        "learner.warmup=3",
        "learner.advantage=group_mean",
        "learner.aggregation=token_mean",
        "learner.beta2=0.95",
        "learner.bucket=4",
        "evaluation.every=3",
        "evaluation.problems=9",
        "evaluation.samples=1",
        "evaluation.batch=8",
        "model=tiny_moe",
    ],
    COUPLED: ["lam=2", "clock.eta=5", "clock.L_ref=20.5", "clock.t_min=0.5", "clock.pilot=7", "updates=9"],
}


@pytest.mark.parametrize("suite", CHANGES)
def test_what_a_row_depends_on_is_in(suite):
    ids = [name(suite=suite), *(name(change, suite=suite) for change in CHANGES[suite])]
    assert len(set(ids)) == len(CHANGES[suite]) + 1
    hashes = {text.rsplit("-", 1)[1] for text in ids}
    assert len(hashes) == len(ids), "the hash alone must tell them apart"


ON = {
    "kl": 0.1,
    "updates_per_batch": 2,
    "tokens": 512,
    "logits": 64,
    "gradient_checkpointing": True,
    "precision": "bf16_autocast",
    "schedule": "cosine",
}
"""A value of every setting of the learner that counts only where it is on."""


OWN = ("sampler.dtype=bfloat16", "sampler.experts_implementation=eager")
"""What a sampler has of its own where it is given."""


@pytest.mark.parametrize("setting", OWN)
def test_what_a_sampler_has_of_its_own_counts_where_it_is_given(setting):
    plain, given = name("model=tiny_moe"), name("model=tiny_moe", setting)
    assert given != plain
    assert name("model=tiny_moe", f"{setting.partition('=')[0]}=null") == plain


def test_the_learners_kernel_counts_where_it_is_given():
    real = ("model=pretrained", "model.path=x", "task=gsm8k", "task.path=x")
    ids = [name("model=tiny_moe", f"model.experts_implementation={kernel}") for kernel in EXPERTS_IMPLEMENTATIONS]
    assert len(set(ids)) == 3
    assert name("model=tiny_moe") == ids[2]
    assert name(*real, "model.experts_implementation=null") == name(*real)
    assert name(*real, "model.experts_implementation=grouped_mm") != name(*real)
    assert "experts_implementation" not in identity.identity(make_config(*real))["model"]


@pytest.mark.parametrize("key", ON)
def test_what_is_off_by_default_counts_where_it_is_on(key):
    assert name(f"learner.{key}={ON[key]}") != name()
    off = identity.OFF[key]
    assert name(f"learner.{key}={'null' if off is None else off}") == name()


def test_every_setting_of_learner_and_sampler_is_in():
    """A field that is added to either is part of the id without anybody remembering it."""
    settings = (f"learner.{key}={value}" for key, value in ON.items())
    cfg = make_config("model=tiny_moe", "evaluation.batch=8", *OWN, *settings)
    assert set(ON) == set(identity.OFF)
    settings = identity.identity(cfg)
    for part in ("learner", "sampler", "evaluation"):
        assert set(settings[part]) == {field.name for field in fields(getattr(cfg, part))}
        assert is_dataclass(getattr(cfg, part))


def test_suites_and_pilots():
    assert name() != name(suite="no_delay")
    known = ("clock.L_ref=20.5", "clock.eta=5")
    assert name(*known, "clock.pilot=7", suite=COUPLED) == name(*known, suite=COUPLED)
    assert name("clock.L_ref=20.5", "clock.pilot=7", suite=COUPLED) != name("clock.L_ref=20.5", suite=COUPLED)


def test_the_readable_part():
    assert name("D=128").startswith("grpo-D128-eps0.2-G8-tiny-chain-s0-")
    assert name("estimator=is", "G=4", "seed=3", "D=0").startswith("is-D0-G4-tiny-chain-s3-")
    assert name("estimator=gmc", "lam=0.5", suite=COUPLED).startswith("gmc-lam0.5-eps0.28-G8-tiny-chain-s0-")
    cfg = make_config("runs_dir=/r", "D=7")
    assert str(run_path(cfg)) == f"/r/fixed_delay/{run_id(cfg)}"
    assert str(run_path(make_config("runs_dir=/r", "mode=trace"))).startswith("/r/trace/fixed_delay-D128-N240-s0-")


def test_a_trace_depends_on_its_lengths_and_not_on_learning():
    trace = ("mode=trace",)
    base = name(*trace, suite=COUPLED)
    assert name(*trace, "lr=1e-5", "estimator=gmc", "sampler.temperature=0.5", suite=COUPLED) == base
    for change in ("lengths.mean=100", "lengths.cap=99", "seed=1", "G=4", "model.seed=1"):
        assert name(*trace, change, suite=COUPLED) != base


def write_problems(path, answers):
    path.write_text("".join(json.dumps({"problem": f"{a}?", "answer": a}) + "\n" for a in answers))
    return f"task.path={path}"


def test_data_files_count_by_content(tmp_path):
    common = ("model=pretrained", f"model.path={tmp_path / 'model'}", "task=gsm8k")
    (tmp_path / "model").mkdir()
    (tmp_path / "model/config.json").write_text("{}")
    first = write_problems(tmp_path / "a.jsonl", ["1", "2"])
    same = write_problems(tmp_path / "b.jsonl", ["1", "2"])
    other = write_problems(tmp_path / "c.jsonl", ["1", "3"])
    assert name(*common, first) == name(*common, same)
    assert name(*common, first) != name(*common, other)


def test_model_folders_count_by_content(tmp_path):
    task = ("model=pretrained", "task=gsm8k", write_problems(tmp_path / "a.jsonl", ["1"]))
    for folder, text in (("one/m", "{}"), ("two/m", "{}"), ("three/m", "{ }")):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "config.json").write_text(text)
    one, two, three = (name(*task, f"model.path={tmp_path / folder}") for folder in ("one/m", "two/m", "three/m"))
    assert one == two
    assert one != three
