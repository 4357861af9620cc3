"""What each preset makes of its knobs, and the characteristic of its kind: what it holds the delay to."""

import re
from dataclasses import fields

import numpy as np
import pytest
from systems import config, law_of, traced

from delaysim.errors import UserError
from delaysim.presets import discover
from delaysim.settings.identity import identity
from delaysim.settings.places import conf_dir

TRANSLATED = [
    ("areal", {}, {"eta": 0, "order": "submit", "workers": 8}),
    ("areal", {"max_head_offpolicyness": 2, "max_concurrent_rollouts": 64}, {"eta": 2, "workers": 64}),
    ("skyrl", {}, {"eta": 4, "order": "completion", "workers": 40}),
    ("skyrl", {"max_staleness_steps": 200}, {"eta": 200, "workers": 768}),
    ("tinker", {}, {"eta": "none", "age_max": 4, "requeue": True, "workers": 8}),
    ("nemo_in_order", {"max_lookahead_versions": 3}, {"eta": 3, "order": "in_order", "workers": 8}),
    ("nemo_weight_fifo", {}, {"eta": 1, "order": "version_in_order"}),
    ("nemo_windowed", {"sample_freshest_first": True}, {"eta": "none", "abort_age": 1, "order": "freshest"}),
    ("nemo_ready_first", {}, {"eta": 1, "order": "submit", "abort_age": None}),
    ("verl_one_step", {}, {"eta": 1, "order": "in_order"}),
    ("verl_fully_async", {}, {"eta": 0, "sync_every": 4, "in_flight": "account"}),
    ("verl_fully_async", {"staleness_threshold": 0.5}, {"eta": 2, "sync_every": 4}),
    ("verl_fully_async", {"staleness_threshold": 1.0, "require_batches": 3}, {"eta": 12, "sync_every": 12}),
    ("verl_fully_async", {"partial_rollout": False}, {"in_flight": "none"}),
    ("pipelinerl", {}, {"eta": "none", "queue_drop": 2.0, "workers": 8, "sync_every": 1}),
    ("pipelinerl", {"max_lag": 512}, {"eta": 8, "queue_drop": None}),
    ("pipelinerl", {"pop_old_data": False}, {"eta": 3, "queue_drop": None}),
    ("pipelinerl", {"weight_update_interval": 65}, {"sync_every": 2}),
    ("prime_rl", {}, {"eta": "none", "abort_age": 8, "workers": 128}),
    ("slime", {"update_weights_interval": 3}, {"eta": 1, "order": "in_order", "sync_every": 3}),
    ("roll", {"async_generation_ratio": 1.5}, {"eta": 2, "order": "version_in_order"}),
    ("openrlhf", {"async_queue_size": 2}, {"eta": 2, "order": "in_order", "workers": 8, "in_flight": "none"}),
    ("trl_async", {}, {"eta": 20, "age_max": 4, "workers": 32}),
    ("trl_async", {"weight_sync_steps": 2}, {"age_max": 9, "sync_every": 2}),
    ("torchforge", {"off_by_n": 2}, {"eta": "none", "order": "random", "age_max": 2, "workers": 1}),
    ("m2po", {"stale_iteration": 64}, {"eta": 256, "order": "in_order", "sync_every": 4}),
    ("m2po", {"stale_iteration": 2, "train_batch_size": 24}, {"eta": 6, "sync_every": 3}),
]


@pytest.mark.parametrize(("name", "knobs", "clock"), TRANSLATED)
def test_knobs_become_settings_of_the_clock(name, knobs, clock):
    cfg = config(name, **knobs)
    assert {key: getattr(cfg.clock, key) for key in clock} == clock


def test_every_system_has_a_preset_and_every_preset_a_system():
    assert sorted(path.stem for path in (conf_dir() / "preset").glob("*.yaml")) == list(discover())
    for name in discover():
        cfg = config(name)
        assert (cfg.preset.name, cfg.suite_name, cfg.clock.lam) == (name, "simulated_async", 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", discover())
def test_every_knob_is_read(name):
    before = config(name).clock
    for field in fields(discover()[name].Knobs):
        if field.metadata:
            value = not field.default if isinstance(field.default, bool) else 80 if "batch" in field.name else 3
            value = 80 if field.name in ("max_lag", "weight_update_interval", "max_inflight_tasks") else value
            value = 200 if field.name in ("ring_buffer_size", "llm_max_rollouts") else value
            assert config(name, **{field.name: value}).clock != before, field.name


GATED = [
    ("areal", {"max_head_offpolicyness": 4, "max_concurrent_rollouts": 64}),
    ("skyrl", {}),
    ("nemo_ready_first", {"max_staleness_versions": 4, "max_inflight_prompts": 64}),
    ("pipelinerl", {"max_lag": 256, "llm_max_rollouts": 512}),
    ("verl_fully_async", {"staleness_threshold": 1.0}),
]


@pytest.mark.parametrize(("name", "knobs"), GATED)
def test_a_cap_on_admission_holds_the_mean_and_not_the_maximum(name, knobs):
    cfg = config(name, **knobs)
    trace, every = traced(cfg), cfg.clock.sync_every
    assert trace.steady.mean() == pytest.approx(4 + (every - 1) / 2, abs=0.12)
    assert trace.steady.max() > 4 + every
    assert trace.length_ratio == pytest.approx(1, abs=0.02)


DROPPING = [
    ("tinker", {"max_steps_off_policy": 1}, 1),
    ("nemo_windowed", {"max_staleness_versions": 2, "max_inflight_prompts": 24}, 2),
    ("prime_rl", {"max_off_policy_steps": 3, "max_inflight": 256}, 3),
    ("trl_async", {"max_staleness": 2, "weight_sync_steps": 2}, 5),
    ("torchforge", {"off_by_n": 2, "rollout_threads": 24}, 2),
]


@pytest.mark.parametrize(("name", "knobs", "most"), DROPPING)
def test_a_bound_on_age_holds_the_maximum_and_drops_long_responses(name, knobs, most):
    trace = traced(config(name, **knobs))
    assert trace.delay.max() == most
    assert trace.steady.mean() < most - 0.2
    assert trace.length_ratio < 0.97


def test_a_ring_that_drops_its_oldest_does_not_look_at_lengths():
    trace = traced(config("pipelinerl", llm_max_rollouts=256, C_gen=1))
    assert trace.delay.max() > 2
    assert trace.length_ratio == pytest.approx(1, abs=0.03)


IN_ORDER = [
    ("nemo_in_order", {"max_lookahead_versions": 3}, 3),
    ("nemo_weight_fifo", {"max_staleness_versions": 3}, 3),
    ("openrlhf", {"async_queue_size": 2}, 2),
    ("roll", {"async_generation_ratio": 2.0}, 2),
    ("slime", {"update_weights_interval": 3}, 3),
]


@pytest.mark.parametrize(("name", "knobs", "most"), IN_ORDER)
def test_systems_that_wait_for_what_comes_first_hold_every_delay(name, knobs, most):
    trace = traced(config(name, **knobs))
    assert trace.delay.max() == most
    assert trace.length_ratio == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("lam", [0.0, 1.0])
def test_verl_one_step_off_is_exactly_one_step_off(lam):
    trace = traced(config("verl_one_step", lam=lam))
    assert np.array_equal(trace.delay, np.minimum(trace.update, 1))


@pytest.mark.parametrize(("name", "knobs"), [
    ("verl_fully_async", {"staleness_threshold": 0.0, "trigger_parameter_sync_step": 1}),  # verl #4449
    ("areal", {"max_head_offpolicyness": 0}),
    ("roll", {"async_generation_ratio": 0.0}),
    ("prime_rl", {"max_off_policy_steps": 0, "max_inflight": 64}),
    ("skyrl", {"max_staleness_steps": 0}),
])  # fmt: skip
def test_no_staleness_asked_for_is_none(name, knobs):
    assert set(traced(config(name, **knobs)).delay) == {0}


def test_m2po_delays_whole_iterations_exactly():
    one = traced(config("m2po", stale_iteration=16, train_batch_size=8))
    assert np.array_equal(one.delay, np.minimum(one.update, 16))
    four = traced(config("m2po", stale_iteration=4))
    assert np.array_equal(four.delay, np.where(four.update < 20, four.update, 16 + four.update % 4))


@pytest.mark.parametrize(("name", "knobs", "counts"), [
    ("areal", {}, [0, 5, 3, 19]),
    ("prime_rl", {}, [0, 5, 3, 19]),
    ("verl_fully_async", {}, [0, 1, 0, 4]),
    ("verl_fully_async", {"require_batches": 2}, [0, 1, 0, 2]),
    ("trl_async", {"weight_sync_steps": 2}, [0, 2, 1, 9]),
    ("pipelinerl", {}, [0, 320, 192, 1216]),
    ("pipelinerl", {"weight_update_interval": 128}, [0, 256, 128, 1152]),
    ("slime", {"update_weights_interval": 4}, [0, 1, 0, 4]),
    ("m2po", {"stale_iteration": 1}, [0, 1, 0, 4]),
])  # fmt: skip
def test_own_counts_of_staleness(name, knobs, counts):
    update, version = np.array([0, 9, 7, 27]), np.array([0, 4, 4, 8])
    cfg = config(name, **knobs)
    assert discover()[name].staleness(update, version, cfg.preset, cfg.B, cfg.G).tolist() == counts


def test_the_same_clock_is_the_same_run():
    ready_first = config("nemo_ready_first", max_staleness_versions=2)
    assert identity(ready_first) == identity(config("areal", max_head_offpolicyness=2))
    assert law_of(ready_first) == law_of(config("areal", max_head_offpolicyness=2))
    assert identity(ready_first) != identity(config("areal", max_head_offpolicyness=1))
    assert identity(config("slime")) == identity(config("verl_one_step"))


def test_the_clock_can_still_be_set():
    cfg = config("areal", clock__order="lifo", clock__eta=3)
    assert (cfg.clock.order, cfg.clock.eta, cfg.clock.workers) == ("lifo", 3, 8)


@pytest.mark.parametrize(("name", "settings", "words"), [
    ("areal", {"max_head_offpolicyness": -1}, "preset.max_head_offpolicyness=-1: give 0 or more"),
    ("areal", {"suite_name": "no_delay"}, "+preset=areal: is of the suite simulated_async; drop +suite=no_delay"),
    ("trl_async", {"max_staleness": 0}, "leaves nothing in generation"),
    ("verl_fully_async", {"trigger_parameter_sync_step": 0}, "clock.sync_every=0: give 1 or more"),
])  # fmt: skip
def test_what_cannot_be_meant_is_refused_in_one_line(name, settings, words):
    with pytest.raises(UserError, match=re.escape(words)) as refused:
        config(name, **settings)
    assert "\n" not in str(refused.value)
