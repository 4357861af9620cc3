"""Real vLLM as the engine of a mixture of experts: parity, and what replay does without a record of the engine's."""

import logging
from contextlib import closing

import numpy as np
import pytest
import torch
from settings import fingerprint, rows, run, small_config
from stopping import stopped_and_resumed

from delaysim.errors import SamplerFailed
from delaysim.policy import vllm_engine, vllm_sampler
from delaysim.policy.codec import CharacterCodec
from delaysim.policy.routing import Routing
from delaysim.policy.tiny import build_model
from delaysim.policy.vllm_engine import Engine
from delaysim.policy.vllm_sampler import VllmSampler
from delaysim.settings.models import TinyMoeConf
from delaysim.settings.samplers import VllmSamplerConf

pytestmark = pytest.mark.vllm
DENSE = ("D=2", "updates=5", "evaluation.every=null", "sampler=vllm", "lr=3e-3", "learner.warmup=0")
SHORT = (*DENSE, "model=tiny_moe")
ROUNDING = 5e-5
"""Both sides in float32, on log-probabilities down to -20 nats [nats]."""


@pytest.fixture(scope="module")
def runs(base_cache, tmp_path_factory):
    """The dense control, and the mixture without replay and with R2."""
    folder = tmp_path_factory.mktemp("runs")
    for name, given in {"dense": DENSE, "none": SHORT, "r2": (*SHORT, "routing=r2")}.items():
        ended = run(small_config(*given), folder / name)
        assert ended.state == "done", ended.message
    return folder


@pytest.mark.parametrize("name", ["dense", "none", "r2"])
def test_engine_and_learner_agree_to_rounding(runs, name):
    """Experts or none: at every publish and on every sampled token."""
    updates = rows(runs / name, "updates")
    assert len(updates) == 5
    assert all(0 < row["publish_gap"] < ROUNDING for row in updates)
    assert all(0 < row["mismatch_max"] < ROUNDING for row in updates)
    assert all(row["mismatch_mean"] < ROUNDING / 50 for row in updates)


def test_r2_leaves_no_flip_between_launch_and_update(runs):
    """Without it the same rates of learning do, once the weights have moved; at delay 0 nothing has."""
    free, replayed = rows(runs / "none", "updates"), rows(runs / "r2", "updates")
    assert [row["delay_max"] for row in free] == [row["delay_max"] for row in replayed] == [0, 1, 2, 2, 2]
    assert free[0]["flips_drift"] == 0
    assert free[-1]["flips_drift"] > 0
    assert all(row["flips_drift"] == row["flips_drift_tokens"] == 0 for row in replayed)
    assert replayed[-1]["flips_live"] > 0, "the routers would have chosen others"


def test_the_engines_own_experts_are_not_known_on_a_cpu(runs):
    """No column rather than one of zeros; a dense model has none of them."""
    for name, wanted in (("none", {"drift", "live"}), ("r2", {"drift", "live"}), ("dense", set())):
        for row in rows(runs / name, "updates"):
            found = {key.split("_")[1] for key in row if key.startswith("flips_")}
            assert found == wanted


def test_an_engine_on_a_second_device_leaves_the_record_of_one(runs, tmp_path):
    """Its process replays by what it recomputed there."""
    ended = run(small_config(*SHORT, "routing=r2", "devices=[cpu,cpu]"), tmp_path / "two")
    assert ended.state == "done", ended.message
    assert fingerprint(tmp_path / "two") == fingerprint(runs / "r2")


def test_stopped_and_resumed_it_replays_what_was_recorded_before(runs, tmp_path, monkeypatch):
    """Waiting groups keep the experts of their launch, and no experts of the engine's."""
    again = stopped_and_resumed((*SHORT, "routing=r2"), tmp_path / "run", monkeypatch, update=2)
    assert again == fingerprint(runs / "r2")


def test_with_the_engines_experts_r3_trains_as_r2_does(runs, tmp_path, monkeypatch):
    """Both sides in float32 choose alike. The arrays are the learner's, in vLLM's form, for want of a GPU."""
    generate = Engine.generate

    def naming(self, prompts, params):
        outputs = generate(self, prompts, params)
        for prompt, output in zip(prompts, outputs, strict=True):
            done = output.outputs[0]
            done.routed_experts = as_vllm_names(self._model, [*prompt, *done.token_ids[:-1]])
        return outputs

    monkeypatch.setattr(Engine, "generate", naming)
    monkeypatch.setattr(vllm_sampler, "names_experts", lambda device, conf: True)
    monkeypatch.setattr(vllm_engine, "engine_settings", lambda model, conf, routes: SETTINGS(model, conf))
    cfg = small_config(*SHORT, "routing=r3", "devices=[cuda:0]")
    cfg.devices = ["cpu"]
    ended = run(cfg, tmp_path / "r3")
    assert ended.state == "done", ended.message
    for row in rows(tmp_path / "r3", "updates"):
        assert row["flips_engine"] == row["flips_drift"] == row["flips_whole"] == 0
    assert rows(tmp_path / "r3", "updates")[-1]["flips_live"] > 0
    assert fingerprint(tmp_path / "r3")["weights"] == fingerprint(runs / "r2")["weights"]


SETTINGS = vllm_engine.engine_settings


def as_vllm_names(model, ids):
    """The experts that a transformers model chooses for these tokens, as an engine would give them."""
    routing = Routing(model)
    with torch.no_grad(), routing.watching():
        model(input_ids=torch.tensor([ids]))
        return routing.chosen().numpy().astype(np.uint8)


def test_vllm_refuses_to_name_experts_on_a_cpu():
    """Why `names_experts` says so; where this fails, an engine on a CPU can be asked."""
    model = build_model(TinyMoeConf()).eval()
    conf = VllmSamplerConf(max_new_tokens=8)
    with pytest.raises(SamplerFailed, match="Value error, AuxOutput Connector requires Model Runner V2"):
        VllmSampler(model, CharacterCodec(), conf, enable_return_routed_experts=True)


def test_an_experts_kernel_does_not_make_every_line_appear_twice(monkeypatch):
    """It logs by the root logger, which gets a handler that way unless it has one."""
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    model = build_model(TinyMoeConf()).eval()
    with closing(VllmSampler(model, CharacterCodec(), VllmSamplerConf(max_new_tokens=8))):
        assert all(isinstance(handler, logging.NullHandler) for handler in root.handlers)


def test_a_copy_in_bfloat16_is_judged_by_the_median(monkeypatch):
    """The engine has the weights; then one layer's experts change places in the learner, and nothing is published."""
    torch.manual_seed(0)
    model = build_model(TinyMoeConf()).eval()
    with closing(VllmSampler(model, CharacterCodec(), VllmSamplerConf(max_new_tokens=8, dtype="bfloat16"))) as sampler:
        assert np.median(sampler._differences()) < sampler.gap / 5
        with torch.no_grad():
            down = model.model.layers[1].mlp.experts.down_proj
            down.copy_(down.flip(0))
        monkeypatch.setattr(sampler._engine, "publish", lambda version: None)
        with pytest.raises(SamplerFailed, match=r"differ from the learner's by [\d.]+ nats in the median, above"):
            sampler.publish(1)
