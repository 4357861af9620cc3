"""Which runs may ask a vLLM engine for the experts it used, decided from the settings, without vLLM."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from settings import make_config
from transformers import Qwen3Config

from delaysim.errors import UserError
from delaysim.policy.vllm_engine import engine_settings
from delaysim.settings.routing import names_experts
from delaysim.settings.samplers import VllmSamplerConf
from delaysim.train.flips import Flips

GIVEN = ("model=tiny_moe", "sampler=vllm", "D=2")


@pytest.mark.parametrize("devices", ["[cpu]", "[cpu,cpu]", "[cuda:0,cpu]"])
def test_r3_wants_an_engine_on_a_gpu(devices):
    """On the sampler's device: that of the learner does not matter."""
    with pytest.raises(UserError) as error:
        make_config(*GIVEN, "routing=r3", f"devices={devices}")
    assert str(error.value) == (
        "routing=r3: vLLM on a CPU does not say which experts it used; use routing=r2, or "
        "sampler=hf sampler.dtype=bfloat16, which computes apart too"
    )


def test_r3_wants_the_prefix_cache():
    """VLLM refuses to record without: a token found in the cache is not routed again."""
    given = (*GIVEN, "devices=[cuda:0]", "sampler.prefix_cache=false")
    with pytest.raises(UserError, match=r"^routing=r3: vLLM with sampler.prefix_cache=false does not say which"):
        make_config(*given, "routing=r3")
    assert not names_experts("cuda:0", make_config(*given, "routing=r2").sampler)


@pytest.mark.parametrize("devices", ["[cuda:0]", "[cpu,cuda:0]", "[cuda:0,cuda:1]"])
def test_r3_with_an_engine_on_a_gpu_is_a_run(devices):
    cfg = make_config(*GIVEN, "routing=r3", f"devices={devices}")
    assert names_experts(cfg.devices[-1], cfg.sampler)


@pytest.mark.parametrize("replay", ["none", "r2"])
@pytest.mark.parametrize("devices", ["[cpu]", "[cpu,cpu]"])
def test_what_needs_no_record_of_the_engines_runs_on_a_cpu(replay, devices):
    cfg = make_config(*GIVEN, f"routing={replay}", "routing.record=true", f"devices={devices}")
    assert not names_experts(cfg.devices[-1], cfg.sampler)


def test_r3_with_transformers_needs_no_gpu():
    assert make_config("model=tiny_moe", "D=2", "routing=r3", "sampler.dtype=bfloat16").routing.replay == "r3"


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_an_engine_is_asked_for_experts_from_its_start_or_never(device):
    model = SimpleNamespace(device=torch.device(device), dtype=torch.float32, config=Qwen3Config())
    conf = VllmSamplerConf(max_new_tokens=8)
    asked = engine_settings(model, conf, routes=True)
    assert asked.pop("enable_return_routed_experts") is True
    assert asked["enable_prefix_caching"], "without it vLLM does not start"
    assert asked == engine_settings(model, conf), "nothing for those who do not ask: it costs a copy at each step"


def test_a_run_that_goes_on_without_its_gpu_compares_what_is_known():
    """Waiting groups bring the experts of the engine that drew them, later ones none."""
    same, other = (np.full((3, 2), flip, np.int8) for flip in (0, 1))
    before, after = {"engine": [other], "drift": [other]}, {"drift": [same]}
    for groups in ([before, after], [after, before]):
        columns = Flips(groups).update_columns()
        assert (columns["flips_engine"], columns["flips_drift"], columns["flips_drift_tokens"]) == (1, 0.5, 0.5)
    assert "flips_engine" not in Flips([after]).update_columns()
