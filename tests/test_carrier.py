"""How weights reach an engine, and on which device it starts: decided from the settings, without vLLM."""

from types import SimpleNamespace

import pytest
import torch
from settings import make_config
from transformers import Qwen3Config

from delaysim.policy.vllm_engine import engine_settings
from delaysim.settings.carrier import carrier
from delaysim.settings.samplers import VllmSamplerConf


@pytest.mark.parametrize(
    ("devices", "wanted"),
    [
        ("[cuda:0,cuda:1]", "nccl"),
        ("[cuda:1,cuda:0]", "nccl"),
        ("[cuda:0,cuda:0]", "gloo"),  # NCCL refuses two ranks on one GPU
        ("[cuda:0,cpu]", "gloo"),
        ("[cpu,cuda:0]", "gloo"),
        ("[cpu,cpu]", "gloo"),
        ("[cuda:0]", None),
    ],
)
def test_nccl_carries_between_two_gpus_alone(devices, wanted):
    given = (f"devices={devices}", "D=1")
    assert carrier(make_config(*given, "sampler=vllm")) == wanted
    assert carrier(make_config(*given, "sampler=hf")) is None


def test_a_learner_that_does_not_wait_meets_nobody():
    """The suite measured: an engine takes what main memory offers when it begins to draw."""
    cfg = make_config("devices=[cuda:0,cuda:1]", "sampler=vllm", "clock.eta=2", suite="measured")
    assert carrier(cfg) is None


@pytest.mark.parametrize(("device", "ids"), [("cuda:0", [0]), ("cuda:1", [1]), ("cuda", [0])])
def test_an_engine_starts_on_its_models_gpu(device, ids):
    """VLLM takes the first it sees unless it is told."""
    model = SimpleNamespace(device=torch.device(device), dtype=torch.float32, config=Qwen3Config())
    assert engine_settings(model, VllmSamplerConf(max_new_tokens=8))["device_ids"] == ids
