"""How experts are computed: by any kernel the same up to rounding, in the learner as in a sampler of its own kernel."""

import copy

import numpy as np
import pytest
import torch
from directories import build_model, save
from learners import CODEC
from settings import make_config, rows, run, small_config

from delaysim.errors import UserError
from delaysim.policy.experts import set_experts
from delaysim.policy.lagging import Lagging
from delaysim.policy.layout import Row
from delaysim.policy.model import Policy, with_sampler
from delaysim.policy.pretrained import load_pretrained
from delaysim.policy.remote import RemoteSampler, Seat
from delaysim.policy.sample import Decoding
from delaysim.policy.sampler import Draw
from delaysim.policy.score import score
from delaysim.policy.tiny import demonstrations, load_tiny
from delaysim.run.footprint import footprint
from delaysim.run.respondent import Candidate
from delaysim.settings.answering import Answering
from delaysim.settings.models import EXPERTS_IMPLEMENTATIONS, TinyMoeConf
from delaysim.settings.samplers import HfSamplerConf
from delaysim.tasks.chain import Chain

CONF = TinyMoeConf(sft_steps=6)
ROUNDING = 1e-4
"""Far above what float32 kernels differ by [nats], far below bfloat16."""
PROMPTS = [CODEC.encode_prompt(text) for text in ("4+8+3=", "1+2+9+5+5=")]
DECODING = Decoding(12, 1.0, CODEC.stop_ids)
DRAW = Draw(7, "sampling", [(0, 0, i) for i in range(8)])
MIXTURE = {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "decoder_sparse_step": 1}
OTHER = ("eager", "batched_mm")
"""A learner's kernel and another one for its sampler."""


@pytest.fixture
def model(base_cache):
    torch.set_num_threads(1)
    return load_tiny(CONF, Chain(), lambda *_: None).eval()


def computed(model, kernel):
    other = copy.deepcopy(model)
    set_experts(other, kernel)
    return other


def drawn(sampler):
    responses = sampler.sample(PROMPTS, 4, DECODING, DRAW)
    return [r.tokens.tolist() for r in responses], np.concatenate([r.logp for r in responses])


def own(model, kernel=None, dtype=None):
    return with_sampler(Policy(model, CODEC), HfSamplerConf(experts_implementation=kernel, dtype=dtype)).sampler


def same(one, other):
    return one[0] == other[0] and np.array_equal(one[1], other[1])


def gradient(model, batch):
    model.zero_grad()
    (-score(model, batch, 1.0, len(batch)).logp.mean()).backward()
    return [p.grad.double() for p in model.parameters()]


@pytest.mark.parametrize("kernel", EXPERTS_IMPLEMENTATIONS)
def test_every_kernel_has_the_exact_gradient_idle_experts_included(model, kernel):
    """Against one expert after another in double precision; three tokens reach six experts of sixteen at most."""
    (first, *_) = demonstrations(CONF, Chain(), 5)
    batch = [Row(first.prompt[:1], first.response[:2])]
    exact = gradient(computed(model, "eager").double(), batch)
    found = gradient(computed(model, kernel), batch)
    size = torch.cat([g.flatten() for g in exact]).norm()
    assert max(float((a - b).abs().max()) for a, b in zip(found, exact, strict=True)) < 1e-6 * float(size)
    for layer in model.model.layers:
        index = [id(p) for p in model.parameters()].index(id(layer.mlp.experts.down_proj))
        idle = exact[index].flatten(1).norm(dim=1) == 0
        assert idle.sum() >= 10
        assert found[index][idle].abs().max() == 0


@pytest.mark.parametrize("kernel", EXPERTS_IMPLEMENTATIONS)
def test_the_learners_own_kernel_is_no_mismatch(model, kernel):
    learner = computed(model, kernel)
    assert same(drawn(own(learner, kernel)), drawn(own(learner)))


def test_another_kernel_differs_by_rounding_and_bfloat16_by_more(model):
    learner, kernel = computed(model, OTHER[0]), OTHER[1]
    tokens, logp = drawn(own(learner))
    others, other = drawn(own(learner, kernel))
    assert others == tokens
    assert 0 < np.abs(other - logp).max() < ROUNDING
    responses = own(learner, kernel, "bfloat16").sample(PROMPTS, 4, DECODING, DRAW)
    with torch.no_grad():
        scored = score(learner, [Row(PROMPTS[i // 4], r.tokens) for i, r in enumerate(responses)], 1.0, 8)
    table = scored.padded(8, scored.logp).numpy()
    assert 1e-3 < max(np.abs(table[i, : len(r.logp)] - r.logp).max() for i, r in enumerate(responses)) < 1


def move(model):
    with torch.no_grad():
        for i, parameter in enumerate(model.parameters()):
            parameter.mul_(1 + 0.2 * (-1) ** i)


def test_it_holds_the_published_weights_until_the_next_publish(model):
    sampler, kernel = own(model, OTHER[1]), OTHER[1]
    before = drawn(sampler)
    move(model)
    assert same(drawn(sampler), before)
    sampler.publish(1)
    assert same(drawn(sampler), drawn(own(computed(model, kernel))))
    assert not same(drawn(sampler), before)


def test_a_lagging_sampler_has_its_own_kernel(model):
    conf = HfSamplerConf(experts_implementation=OTHER[1])
    lagging = Lagging(model, lambda copied: with_sampler(Policy(copied, CODEC), conf))
    wanted = drawn(own(computed(model, OTHER[1])))
    move(model)
    assert same(drawn(lagging.policy.sampler), wanted)
    lagging.arrive(1)
    assert same(drawn(lagging.policy.sampler), drawn(own(computed(model, OTHER[1]))))


@pytest.mark.slow
@pytest.mark.parametrize(("learners", "samplers"), [("batched_mm", None), ("grouped_mm", "batched_mm")])
def test_a_sampler_in_another_process_obeys(model, learners, samplers):
    learner = computed(model, learners)
    remote = RemoteSampler(learner, Seat(CODEC, HfSamplerConf(experts_implementation=samplers), "cpu", 1))
    try:
        assert same(drawn(remote), drawn(own(computed(model, "batched_mm"))))
        assert not same(drawn(remote), drawn(own(computed(model, "eager"))))
    finally:
        remote.close()


@pytest.mark.slow
def test_a_run_records_the_mismatch(base_cache, tmp_path):
    settings = ("model=tiny_moe", "D=1", "updates=3", "evaluation.every=null")
    for kernel in OTHER:
        cfg = small_config(*settings, "model.experts_implementation=eager", f"sampler.experts_implementation={kernel}")
        assert run(cfg, tmp_path / kernel).state == "done"
    equal, apart = ([row["mismatch_max"] for row in rows(tmp_path / kernel, "updates")] for kernel in OTHER)
    assert max(apart) < ROUNDING
    assert max(equal) < ROUNDING, "decoding and scoring multiply tables of other shapes"
    assert equal != apart


# who takes it


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (("sampler.experts_implementation=eager",), "sampler.experts_implementation=eager: the model has no experts"),
        (("model=qwen3_1b7", "task=gsm8k", "task.path=x", "model.experts_implementation=eager"),
         "model.experts_implementation=eager: the model has no experts"),
        (("model=tiny_moe", "sampler.experts_implementation=fast"),
         "sampler.experts_implementation=fast: choose one of eager, batched_mm, grouped_mm"),
        (("model=tiny_moe", "model.experts_implementation=fast"),
         "model.experts_implementation=fast: choose one of eager, batched_mm, grouped_mm"),
        (("model=tiny_moe", "sampler=vllm", "sampler.experts_implementation=eager"),
         "sampler.experts_implementation=eager: vLLM has kernels of its own; use sampler=hf, or drop it"),
    ],
)  # fmt: skip
def test_settings_that_cannot_be_meant(overrides, said):
    with pytest.raises(UserError) as error:
        make_config("D=1", *overrides)
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)


def test_a_dense_model_says_so_when_it_is_loaded(tmp_path):
    conf = save(tmp_path, build_model())
    conf.experts_implementation = "eager"
    with pytest.raises(UserError, match="experts_implementation=eager: the model has no experts") as error:
        load_pretrained(conf)
    assert "\n" not in str(error.value)
    conf.experts_implementation = None
    with pytest.raises(UserError, match="experts_implementation=eager: the model has no experts"):
        with_sampler(load_pretrained(conf), HfSamplerConf(experts_implementation="eager"))


@pytest.mark.parametrize("kernel", [None, *EXPERTS_IMPLEMENTATIONS])
def test_a_pretrained_mixture_takes_it(tmp_path, kernel):
    conf = save(tmp_path, build_model("Qwen3Moe", **MIXTURE))
    conf.experts_implementation = kernel
    loaded = load_pretrained(conf).model
    assert loaded.get_experts_implementation()[""] == (kernel or "grouped_mm")


@pytest.mark.parametrize(("learners", "samplers"), [(None, None), ("eager", "batched_mm")])
def test_an_evaluation_is_named_by_the_kernels_that_are_given(tmp_path, learners, samplers):
    conf = save(tmp_path, build_model("Qwen3Moe", **MIXTURE))
    conf.experts_implementation = learners
    asked = Candidate("x", conf, None, 0, Answering(HfSamplerConf(experts_implementation=samplers))).drawn()
    assert asked["model"].get("experts_implementation") == learners
    assert asked["sampler"].get("experts_implementation") == samplers
    assert ("experts_implementation" in asked["model"]) == (learners is not None)


def test_a_copy_for_its_kernel_is_counted():
    plain, copied = (
        footprint(small_config("model=tiny_moe", "D=1", *more))
        for more in ((), ("sampler.experts_implementation=eager",))
    )
    assert (plain.own, copied.own) == (0, 4 * 1_036_864)
