"""Everything the model meets is on its device: sampling and learning on a stand-in for a GPU, which has no numbers.

The model lives on torch's meta device. Whatever crosses to the CPU by `.cpu()`, `float()` or `bool()` comes back as
made-up numbers; every other operation on a tensor of the device together with one of the CPU is an error, as on a GPU.
"""

from functools import partial

import pytest
import torch
from learners import CODEC, make, rule, stale_groups, tiny_base
from settings import make_config
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._pytree import tree_leaves

from delaysim.errors import UserError
from delaysim.policy.device import place
from delaysim.policy.noise import GumbelNoise
from delaysim.policy.sample import Decoding, sample
from delaysim.policy.tiny import build_model
from delaysim.settings.models import TinyModelConf, TinyMoeConf

ONE_OR_TWO = "give one, or two: the learner's and the sampler's, e.g. devices=[cuda:0,cuda:1]"
STOPS_EVERY_OTHER = torch.tensor([3, CODEC.EOS])


class OneDevice(TorchFunctionMode):
    """Refuses what a GPU would refuse."""

    def __torch_function__(self, function, types, arguments=(), keywords=None):
        keywords = keywords or {}
        first = arguments[0] if arguments else None
        if isinstance(first, torch.Tensor) and first.is_meta:
            if function is torch.Tensor.cpu:
                return made_up(first)
            if function is torch.Tensor.__float__:
                return 0.5
            if function in (torch.Tensor.__bool__, torch.Tensor.item):
                return False
        if function not in (torch.Tensor.to, torch.Tensor.copy_):
            tensors = [t for t in tree_leaves((arguments, keywords)) if isinstance(t, torch.Tensor) and t.dim()]
            if len({t.device for t in tensors}) > 1:
                raise AssertionError(f"{resolve_name(function)}: tensors on two devices")
        return function(*arguments, **keywords)


def made_up(tensor):
    """On the CPU: tokens of which every second one stops, zeros for anything else."""
    if tensor.dtype == torch.int64 and tensor.dim() == 1:
        return STOPS_EVERY_OTHER.repeat(len(tensor))[: len(tensor)]
    return torch.zeros(tensor.shape, dtype=tensor.dtype)


def on_the_device(conf):
    with torch.device("meta"):
        return build_model(conf).eval()


def test_the_stand_in_refuses_what_a_gpu_refuses():
    there, here = torch.zeros(3, device="meta"), torch.ones(3)
    for mix in (
        lambda: there + here,
        lambda: there[here.long()],
        lambda: torch.where(here > 0, there, there),
        lambda: torch.nn.functional.embedding(here.long(), there[:, None]),
        lambda: torch.cat([there, here]),
    ):
        with OneDevice(), pytest.raises(AssertionError, match="two devices"):
            mix()
    with OneDevice():
        assert (there + here.to(there) + 1).is_meta
        assert there.cpu().tolist() == [0, 0, 0]


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("noise", [True, False])
def test_sampling_stays_on_the_device(monkeypatch, masked, noise):
    """Padded prompts, rows that retire after the first token, masks of ours and of transformers."""
    monkeypatch.setattr("delaysim.policy.sample.accepts_any_mask", lambda _: masked)
    model = on_the_device(TinyModelConf())
    prompts = [CODEC.encode_prompt(text) for text in ("1+2=", "4+8+3+9=")]
    gumbel = GumbelNoise(0, "test", [(i,) for i in range(8)], CODEC.vocabulary) if noise else None
    with OneDevice():
        responses = sample(model, prompts, 4, Decoding(5, 1.0, CODEC.stop_ids), gumbel)
    assert sorted({len(r.tokens) for r in responses}) == [1, 2, 3, 5]


@pytest.fixture(scope="module")
def groups(base_cache):
    return stale_groups(tiny_base())


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("grpo", {}),
        ("grpo", {"tokens": 40}),
        ("gmc", {"tokens": 40, "logits": 7, "gradient_checkpointing": True}),
        ("decoupled", {"updates_per_batch": 2, "pack": 0}),
        ("tic", {"kl": 0.1}),
        ("tis", {"rule": rule("vcpo"), "tokens": 40}),
        ("is", {"rule": rule("gac", low=-1.0, high=0.999)}),
    ],
)
def test_learning_stays_on_the_device(monkeypatch, groups, name, settings):
    monkeypatch.setattr(torch.optim, "AdamW", partial(torch.optim.AdamW, foreach=False))
    adamw = torch.optim.AdamW
    monkeypatch.setattr(torch.optim, "AdamW", lambda *a, fused, **k: adamw(*a, **k))  # no fused kernel for the stand-in
    model = on_the_device(TinyModelConf())
    with OneDevice():
        learner = make(model, name, **settings)
        for update in (7, 8):
            outcome = learner.update(update, groups)
    assert {p.grad.device.type for p in model.parameters()} == {"meta"}
    assert {v.device.type for v in (outcome.kappa, outcome.batch.logp, outcome.batch.advantages)} == {"cpu"}
    moments = [t for key, t in learner.optimiser_state().items() if "exp_avg" in key]
    assert {t.device.type for t in moments} == {"meta"}


def test_a_mixture_of_experts_is_scored_on_its_device(monkeypatch):
    """Its routing reads numbers, which the stand-in has not: the layer's own parts are checked."""
    model = on_the_device(TinyMoeConf())
    with OneDevice():
        _, weights, chosen = model.model.layers[0].mlp.gate(torch.zeros(5, 64, device="meta"))
    assert weights.is_meta
    assert chosen.is_meta


@pytest.mark.parametrize(
    ("devices", "message"),
    [
        ("[cpu,cpu,cpu]", f"devices=[cpu,cpu,cpu]: {ONE_OR_TWO}"),
        ("[]", f"devices=[]: {ONE_OR_TWO}"),
        ("[cpu,gpu]", "devices=[cpu,gpu]: gpu is no device; write cpu, or cuda:0"),
        ("[cuda]", "devices=[cuda]: cuda is no device; write cpu, or cuda:0"),
    ],
)
def test_devices_that_cannot_be_meant_are_refused(devices, message):
    with pytest.raises(UserError) as error:
        make_config(f"devices={devices}")
    assert str(error.value) == message


def test_a_gpu_that_is_not_there_is_refused():
    model = build_model(TinyModelConf())
    with pytest.raises(UserError, match=r"^devices: torch sees \d+ CUDA devices, no cuda:63; use devices=\[cpu\]"):
        place(model, ["cuda:63"])
    with pytest.raises(UserError, match="no cuda:63"):
        place(model, ["cpu", "cuda:63"])
    place(model, ["cpu"])
    assert model.device.type == "cpu"
