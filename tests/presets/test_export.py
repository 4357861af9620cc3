"""A setting in the words of another system: the way back is the way there, and what does not fit is said."""

import re

import pytest
from systems import config, law_of

from delaysim.__main__ import entry
from delaysim.cli.export import POLICY, export
from delaysim.errors import UserError
from delaysim.presets import discover, family, targets
from delaysim.presets.base import knobs_of, written

pytestmark = pytest.mark.slow
THERE_AND_BACK = [
    ("areal", {"max_head_offpolicyness": 3, "max_concurrent_rollouts": 24}),
    ("skyrl", {"max_staleness_steps": 7}),
    ("skyrl", {"max_staleness_steps": 7, "num_parallel_generation_workers": 20}),
    ("tinker", {"max_steps_off_policy": 6}),
    ("nemo_in_order", {"max_lookahead_versions": 5}),
    ("nemo_weight_fifo", {"max_staleness_versions": 2, "max_inflight_prompts": 10}),
    ("nemo_windowed", {"max_staleness_versions": 3, "sample_freshest_first": True}),
    ("nemo_ready_first", {"max_staleness_versions": 4}),
    ("verl_one_step", {}),
    ("verl_fully_async", {"staleness_threshold": 0.5}),
    ("verl_fully_async", {"staleness_threshold": 2.0, "trigger_parameter_sync_step": 1}),
    ("pipelinerl", {"ring_buffer_size": 192}),
    ("pipelinerl", {"max_lag": 192, "weight_update_interval": 128}),
    ("prime_rl", {"max_off_policy_steps": 5, "max_inflight": 256}),
    ("slime", {"update_weights_interval": 2}),
    ("roll", {"async_generation_ratio": 2.0}),
    ("openrlhf", {"async_queue_size": 3}),
    ("trl_async", {"max_staleness": 3, "weight_sync_steps": 2}),
    ("trl_async", {"max_inflight_tasks": 64, "queue_maxsize": 256}),
    ("torchforge", {"off_by_n": 2, "rollout_threads": 12}),
    ("m2po", {"stale_iteration": 3, "train_batch_size": 16}),
]


@pytest.mark.parametrize(("name", "knobs"), THERE_AND_BACK)
def test_exporting_a_preset_gives_back_its_knobs(name, knobs):
    cfg = config(name, **knobs)
    assert discover()[name].nearest(law_of(cfg)) == cfg.preset


@pytest.mark.parametrize("name", discover())
def test_exporting_the_defaults_gives_back_their_clock(name):
    cfg = config(name)
    back = config(name, **knobs_of(discover()[name].nearest(law_of(cfg))))
    assert [getattr(back.clock, key) for key in POLICY] == [getattr(cfg.clock, key) for key in POLICY]


def test_a_system_is_found_by_its_name():
    assert family("nemo") == ["nemo_in_order", "nemo_ready_first", "nemo_weight_fifo", "nemo_windowed"]
    assert family("verl_one_step") == ["verl_one_step"]
    assert {name for target in targets() for name in family(target)} == set(discover())


def test_knobs_are_written_as_the_system_writes_them():
    assert list(written(config("openrlhf", partial_rollout_enable=True).preset)) == [
        "--train.async_queue_size 1",
        "--train.partial_rollout_enable",
    ]
    assert list(written(config("openrlhf").preset)) == ["--train.async_queue_size 1"]
    assert "async_training.partial_rollout=true" in list(written(config("verl_fully_async").preset))


def exported(capsys, *words):
    assert entry(["export", "--to", *words]) == 0
    lines = capsys.readouterr().out.splitlines()
    return [line for line in lines if line[0] != "#"], "\n".join(line for line in lines if line[0] == "#")


def test_a_fixed_delay_in_areals_words_says_what_it_is_not(capsys):
    knobs, said = exported(capsys, "areal", "+suite=fixed_delay", "D=8", "C_gen=4")
    assert knobs[:2] == ["rollout.max_head_offpolicyness=8", "rollout.max_concurrent_rollouts=72"]
    assert "a mean delay of 8 while the look-ahead binds" in said
    assert "asked         mean 8.00, max 8 (" in said
    mean, most = map(float, re.search(r"these knobs   mean ([\d.]+), max (\d+)", said).groups())
    assert mean == pytest.approx(8, abs=0.2)
    assert most > 12
    assert "order: one delay for all was asked for, it has submit" in said


def test_a_fixed_delay_finds_the_sampler_that_keeps_it(capsys):
    knobs, said = exported(capsys, "nemo", "+suite=fixed_delay", "D=8", "C_gen=4")
    assert {"async_rl.sampler.name=in_order", "async_rl.sampler.max_lookahead_versions=8"} <= set(knobs)
    assert "these knobs   mean 8.00, max 8 (" in said
    assert "was asked for" not in said


def test_one_step_off_is_found_where_it_is_asked_for(capsys):
    knobs, _ = exported(capsys, "verl", "+suite=fixed_delay", "D=1", "C_gen=4")
    assert knobs[0] == "python -m verl.experimental.one_step_off_policy.main_ppo"


def test_a_traced_run_is_exported_by_its_folder(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert entry(["mode=trace", "+preset=tinker", "updates=40", "C_gen=4"]) == 0
    (path,) = (tmp_path / "runs/trace").iterdir()
    assert "in its own count: mean" in capsys.readouterr().out
    knobs, _ = exported(capsys, "nemo_windowed", str(path))
    assert "async_rl.sampler.max_staleness_versions=4" in knobs


@pytest.mark.parametrize(("words", "reason"), [
    (["slime", "+suite=fixed_delay", "D=16"], "is one batch ahead, and 16 was asked for"),
    (["tinker", "+suite=fixed_delay", "D=16"], "comes no closer than a mean delay of"),
    (["openrlhf", "+suite=no_delay"], "for a delay of 0 leave --train.async_enable out"),
    (["megatron", "+suite=no_delay"], "--to megatron: choose one of areal, m2po, nemo"),
    (["areal"], "SETTING; e.g. delaysim export --to areal"),
    (["areal", "D=16"], "no suite chosen"),
    (["areal", "+suite=simulated_async", "clock.eta=none", "clock.workers=8"], "clock.eta=none: AReaL always limits"),
])  # fmt: skip
def test_what_does_not_come_close_is_refused_in_one_line(words, reason):
    with pytest.raises(UserError, match=re.escape(reason)) as refused:
        export(["--to", *words])
    assert "\n" not in str(refused.value)
