"""Runs of a mixture of experts: what they refuse, that they resume, and whose experts a late group replays."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from directories import build_model, save
from mixtures import share_apart
from settings import fingerprint, make_config, rows, run, small_config
from stopping import finished, stopped_and_resumed

from delaysim.errors import UserError
from delaysim.policy.layout import Row
from delaysim.policy.routing import routers
from delaysim.run.rollouts import Rollouts
from delaysim.settings.identity import identity, run_id
from delaysim.settings.routing import RoutingConf
from delaysim.tasks.base import Grade
from delaysim.tasks.chain import Chain
from delaysim.train.learner import Learner
from delaysim.train.scoring import rescored

MOE = ("model=tiny_moe", "updates=6", "lr=3e-3")
MISMATCH = "sampler.dtype=bfloat16"
REFUSED = [
    (["routing=r3"], "routing=r3: model=tiny has no experts; use model=tiny_moe, or drop it"),
    (["routing.lag=1"], "routing.lag=1: model=tiny has no experts; use model=tiny_moe, or drop it"),
    (["routing.record=true"], "routing.record=true: model=tiny has no experts; use model=tiny_moe, or drop it"),
    (["model=tiny_moe", "routing.lag=-1"], "routing.lag=-1: give 0 or more"),
    (
        ["model=tiny_moe", "sampler=vllm", "routing.lag=2"],
        "routing.lag=2: sampler=vllm draws with the learner's weights of now; use sampler=hf, or drop routing.lag",
    ),
    (
        ["model=tiny_moe", "routing.lag=2", "clock.sync_every=2"],
        "routing.lag=2: with clock.sync_every or a sync in the background all of the sampler lags behind; "
        "use clock.sync_every=1 clock.sync_mode=blocking, or drop routing.lag",
    ),
    (
        ["model=tiny_moe", "routing.lag=2", "clock.sync_mode=background", "clock.sync_time=1"],
        "routing.lag=2: with clock.sync_every or a sync in the background all of the sampler lags behind; "
        "use clock.sync_every=1 clock.sync_mode=blocking, or drop routing.lag",
    ),
]


@pytest.mark.parametrize(("asked", "message"), REFUSED, ids=[" ".join(asked) for asked, _ in REFUSED])
def test_what_cannot_be_meant_is_refused_in_one_line(asked, message):
    with pytest.raises(UserError) as error:
        make_config("lam=1", *asked, suite="simulated_async")
    assert str(error.value) == message


@pytest.mark.parametrize("asked", ["routing=r3", "routing=r2", "routing.record=true", "routing.lag=1"])
def test_a_dense_model_from_a_directory_is_refused_before_the_run(base_cache, tmp_path, asked):
    """Whatever its clock needs: no pilot is sampled first, and no run directory stays behind."""
    folder = tmp_path / "model"
    save(folder, build_model("Qwen3"))
    task = tmp_path / "task.py"
    task.write_text("raise SystemExit('the task is not needed')\n")
    overrides = ["model=pretrained", f"model.path={folder}", "task=sums", asked, "lam=1"]
    cfg = make_config(*overrides, "updates=2", "B=2", "G=2", "sampler.max_new_tokens=4", suite="simulated_async")
    before = set(base_cache.rglob("*"))
    with pytest.raises(UserError) as error:
        run(cfg, tmp_path / "run")
    assert "\n" not in str(error.value)
    assert str(error.value).startswith("routing")
    assert not (tmp_path / "run").exists()
    assert set(base_cache.rglob("*")) == before


def test_routing_is_part_of_a_run_where_it_is_on():
    plain = make_config("model=tiny_moe", "D=2")
    off = make_config("model=tiny_moe", "D=2", "routing.lag=0", "routing=none", "routing.record=true")
    assert identity(plain) == identity(off)
    kinds = ([], ["routing=r2"], ["routing=r3"], ["routing.lag=2"])
    found = {run_id(make_config("model=tiny_moe", "D=2", *more)) for more in kinds}
    assert len(found) == 4
    cfg = make_config("model=tiny_moe", "D=2", "routing=r3", "routing.lag=2")
    assert identity(cfg)["routing"] == {"replay": "r3", "lag": 2}
    assert "-r3-lag2-" in run_id(cfg)


@pytest.fixture
def paid(monkeypatch):
    """Rewards that differ in every group, so that every update moves the weights."""

    def grade(_task, _problem, response, _finished):
        return Grade(False, (len(response) + response.count("1")) % 4 / 3)

    monkeypatch.setattr(Chain, "grade", grade)


@pytest.mark.slow
@pytest.mark.parametrize(
    "overrides",
    [
        ("D=2", "routing=r3", MISMATCH),
        ("D=2", "routing=r2", MISMATCH, "learner.gradient_checkpointing=true", "learner.tokens=200"),
        ("D=0", "routing.lag=2"),
        ("D=2", "routing.lag=2", "routing=r3", MISMATCH),
    ],
    ids=" ".join,
)
def test_a_run_resumes_to_the_bit(base_cache, paid, tmp_path, monkeypatch, overrides):
    whole = finished((*MOE, *overrides), tmp_path / "whole")
    assert all(row["grad_norm"] > 0 for row in rows(tmp_path / "whole", "updates"))
    assert stopped_and_resumed((*MOE, *overrides), tmp_path / "cut", monkeypatch, update=4) == whole


@pytest.mark.slow
@pytest.mark.parametrize("overrides", [("routing=r3", MISMATCH), ("routing=r2",), ("routing.lag=1",)], ids=" ".join)
def test_two_devices_record_what_one_does(base_cache, paid, tmp_path, overrides):
    for name, devices in (("one", "devices=[cpu]"), ("two", "devices=[cpu,cpu]")):
        cfg = small_config(*MOE, "updates=4", "D=2", *overrides, "routing.record=true", devices)
        assert run(cfg, tmp_path / name).state == "done"
    assert fingerprint(tmp_path / "one") == fingerprint(tmp_path / "two")
    documented = (Path(__file__).parents[1] / "docs/records.md").read_text()
    assert not [name for name in rows(tmp_path / "one", "updates", clocks=True)[0] if f"`{name}`" not in documented]


class Watched:
    """The learner's weights at each version, what each update got, and the sampler's weights at each launch."""

    def __init__(self, monkeypatch):
        self.versions, self.updates, self.drawing = {}, [], {}
        update, ask = Learner.update, Rollouts.ask

        def updating(learner, n, groups):
            self.versions[n] = copy.deepcopy(learner.model)
            self.updates.append((n, groups))
            outcome = update(learner, n, groups)
            self.versions[n + 1] = copy.deepcopy(learner.model)
            return outcome

        def asking(rollouts, launch):
            self.drawing[launch.version] = copy.deepcopy(rollouts._policy.model)
            return ask(rollouts, launch)

        monkeypatch.setattr(Learner, "update", updating)
        monkeypatch.setattr(Rollouts, "ask", asking)


@pytest.mark.slow
def test_a_late_group_replays_the_experts_of_the_version_that_drew_it(base_cache, paid, tmp_path, monkeypatch):
    watched = Watched(monkeypatch)
    cfg = small_config(*MOE, "D=2", "routing=r3", "lr=1e-2")
    assert run(cfg, tmp_path / "run").state == "done"

    def apart(model, group):
        asked = [Row(group.prompt, r.tokens) for r in group.responses]
        said = rescored(cfg.learner, 1.0, RoutingConf(record=True), model, asked)
        return share_apart([one.routes for one in said], [r.routes for r in group.responses])

    late = [(n, group) for n, groups in watched.updates for group in groups if group.version < n]
    assert len(late) == 10
    then = [apart(watched.versions[group.version], group) for _, group in late]
    now = [apart(watched.versions[n], group) for n, group in late]
    assert max(then) < 0.005
    assert np.mean(now) > 0.005
    assert all(row["flips_whole"] == 0 for row in rows(tmp_path / "run", "updates"))


@pytest.mark.slow
def test_the_samplers_routers_are_so_many_updates_older(base_cache, paid, tmp_path, monkeypatch):
    """And behaviour's log-probabilities are theirs: at delay 0 the ratios are not 1, and no delay is recorded."""
    watched = Watched(monkeypatch)
    assert run(small_config(*MOE, "D=0", "routing.lag=2", "lr=1e-2"), tmp_path / "run").state == "done"
    late = {id(p) for router, _ in routers(watched.versions[0]) for p in router.parameters()}
    late = {name for name, p in watched.versions[0].named_parameters() if id(p) in late}
    assert late
    for version, drawing in watched.drawing.items():
        for name, weight in drawing.named_parameters():
            wanted = watched.versions[max(0, version - 2) if name in late else version]
            assert torch.equal(weight, wanted.get_parameter(name))
    assert set(watched.drawing) == set(range(6))
    updates = rows(tmp_path / "run", "updates")
    assert updates[0]["fresh_log_ratio"] < 1e-4
    assert all(row["fresh_log_ratio"] > 1e-4 for row in updates[2:])
    assert all(row["ess"] < 1 - 1e-9 for row in updates[2:])
    assert all(row["delay_max"] == 0 for row in updates)


@pytest.mark.slow
def test_recomputed_log_probabilities_are_of_the_weights_that_drew(base_cache, paid, tmp_path, monkeypatch):
    """With routers that lag the pass at launch is theirs too: it differs from the sampler by rounding alone."""
    asked = ("D=0", "routing.lag=2", "behaviour=recomputed", "lr=1e-2")
    assert run(small_config(*MOE, *asked), tmp_path / "run").state == "done"
    updates = rows(tmp_path / "run", "updates")
    assert all(row["mismatch_max"] < 1e-4 for row in updates)
    assert all(row["fresh_log_ratio"] > 1e-4 for row in updates[2:])
