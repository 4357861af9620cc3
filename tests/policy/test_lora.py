"""Adapters: nothing at first, then all that is trained, sampled from, and saved; the base is the model without them."""

import copy
import json

import numpy as np
import pytest
import torch
from directories import build_model, save
from learners import make
from safetensors.torch import load_file
from settings import make_config, rows, run

from delaysim.errors import UserError
from delaysim.policy.layout import Row
from delaysim.policy.lora import adapters_off
from delaysim.policy.noise import GumbelNoise
from delaysim.policy.pretrained import load_pretrained
from delaysim.policy.rollout import Group
from delaysim.policy.sample import Decoding, sample
from delaysim.policy.score import score
from delaysim.settings.configfile import load_config
from delaysim.settings.models import LoraConf

pytest.importorskip("peft", reason="the extra lora is not installed")

RANK, ALPHA = 4, 6
DECODING = Decoding(12, 0.8, frozenset({2}))


@pytest.fixture(scope="module")
def conf(tmp_path_factory):
    torch.set_num_threads(1)
    return save(tmp_path_factory.mktemp("model"), build_model())


def adapted(conf, **settings):
    conf = copy.deepcopy(conf)
    conf.lora = LoraConf(rank=RANK, alpha=ALPHA, **settings)
    return load_pretrained(conf)


@pytest.fixture(scope="module")
def groups(conf):
    policy = load_pretrained(conf)
    prompts = [policy.codec.encode_prompt(text) for text in ("what is it", "how")]
    responses = draw(policy.model, prompts)
    rewards = ((1.0, 0.0, 0.5, 0.0), (0.0, 1.0, 1.0, 0.0))
    return [Group(b, 0, prompts[b], tuple(responses[4 * b : 4 * b + 4]), rewards[b]) for b in range(2)]


def draw(model, prompts):
    noise = GumbelNoise(1, "test", [(i,) for i in range(4 * len(prompts))], 40)
    return sample(model, prompts, 4, DECODING, noise)


def logp(model, groups):
    batch = [Row(group.prompt, response.tokens) for group in groups for response in group.responses]
    with torch.no_grad():
        scores = score(model, batch, DECODING.temperature, 16)
    return scores.padded(len(batch), scores.logp)


def weights(model, trained):
    return {name: p.detach().clone() for name, p in model.named_parameters() if p.requires_grad == trained}


def test_new_adapters_change_no_number_and_depend_on_the_seed_alone(conf, groups):
    plain, first, again = load_pretrained(conf).model, adapted(conf).model, adapted(conf).model
    assert torch.equal(logp(plain, groups), logp(first, groups))
    assert [r.tokens.tolist() for r in draw(first, [g.prompt for g in groups])] == [
        r.tokens.tolist() for g in groups for r in g.responses
    ]
    one, other = weights(first, True), weights(again, True)
    assert all(torch.equal(one[name], other[name]) for name in one)
    conf = copy.deepcopy(conf)
    conf.seed = 1
    assert any(not torch.equal(one[name], value) for name, value in weights(adapted(conf).model, True).items())


def test_every_linear_layer_but_the_head_has_one_or_those_named(conf):
    layers = {name.split(".lora_")[0].rsplit(".", 1)[1] for name in weights(adapted(conf).model, True)}
    assert layers == {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
    named = weights(adapted(conf, targets=["q_proj", "v_proj"]).model, True)
    assert len(named) == 2 * 2 * 2
    assert sum(p.numel() for p in named.values()) == 2 * RANK * ((32 + 32) + (32 + 16))


def test_the_gradient_is_the_dense_gradient_through_the_adapter(conf, groups):
    """At B = 0: the gradient of B is alpha/rank * G A^T, that of A is 0, with G the gradient of the whole weight."""
    dense, model = load_pretrained(conf).model, adapted(conf).model
    make(dense, "grpo", lr=0.0).update(3, groups)
    make(model, "grpo", lr=0.0).update(3, groups)
    whole = {name: p.grad for name, p in dense.named_parameters()}
    found = dict(model.named_parameters())
    for name in weights(model, True):
        if ".lora_B." in name:
            a = found[name.replace("lora_B", "lora_A")]
            wanted = ALPHA / RANK * whole[name.replace(".lora_B.default", "")] @ a.T
            largest = float(wanted.detach().abs().max())
            assert torch.allclose(found[name].grad, wanted, atol=1e-5 * largest)
            assert not a.grad.any()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    "settings", [{}, {"gradient_checkpointing": True, "tokens": 60}, {"precision": "bf16_autocast"}]
)
def test_training_moves_the_adapters_alone_and_the_sampler_follows(conf, groups, dtype, settings):
    conf = copy.deepcopy(conf)
    conf.dtype = dtype
    model = adapted(conf).model
    frozen, before = weights(model, False), weights(model, True)
    learner = make(model, "grpo", lr=3e-2, **settings)
    for n in (1, 2, 3):
        learner.update(n, groups)
    assert all(torch.equal(frozen[name], p) for name, p in weights(model, False).items())
    assert all(not torch.equal(before[name], p) for name, p in weights(model, True).items())
    assert {p.dtype for p in weights(model, True).values()} == {torch.float32}
    assert set(learner.optimiser_state()) == {
        *(f"{name}/{key}" for name in before for key in ("step", "exp_avg", "exp_avg_sq")), "previous_gradient",
    }  # fmt: skip
    low = dtype == "bfloat16" or "precision" in settings
    responses = draw(model, [group.prompt for group in groups])
    now = [Group(g.group, 0, g.prompt, tuple(responses[4 * b : 4 * b + 4]), g.rewards) for b, g in enumerate(groups)]
    scored = logp(model, now)
    gap = max(np.abs(scored[i, : len(r.logp)].numpy() - r.logp).max() for i, r in enumerate(responses))
    assert gap < (0.1 if low else 1e-5)
    with adapters_off(model):
        assert float((logp(model, now) - scored).abs().max()) > 0.3
        assert not any(p.requires_grad for p in model.parameters())
    assert torch.equal(logp(model, now), scored)


def test_the_penalty_pulls_towards_the_model_without_adapters(conf, groups):
    model = adapted(conf).model
    learner = make(model, "grpo", lr=3e-2, kl=0.1)
    learner.update(1, groups)
    found = learner.update(2, groups).batch
    wanted = logp(load_pretrained(conf).model, groups)
    assert torch.allclose(found.reference.flatten(0, 1).float(), wanted, atol=1e-5)
    assert float((found.logp - found.reference).abs().max()) > 0.05


def test_a_layer_that_is_not_there_is_named(conf):
    with pytest.raises(UserError, match=r"^model\.lora\.targets=nowhere: Target modules \{'nowhere'\} not found"):
        adapted(conf, targets=["nowhere"])


def overrides(conf, folder, *more):
    problems = folder / "problems.jsonl"
    problems.write_text("".join(json.dumps({"problem": f"a{'b' * i}", "answer": str(i)}) + "\n" for i in range(12)))
    return (
        "model=pretrained", f"model.path={conf.path}", "task=gsm8k", f"task.path={problems}", "task.instruction=''",
        "D=1", "B=2", "G=2", "updates=5", "checkpoint.every=2", "sampler.max_new_tokens=8", "lr=1e-2",
        "learner.warmup=0", "evaluation.problems=2", "evaluation.every=null", "learner.advantage=signed_reward", *more,
    )  # fmt: skip


REAL_SIZE = (
    "learner.tokens=64", "learner.logits=8", "learner.gradient_checkpointing=true", "learner.pack=0",
    "learner.precision=bf16_autocast", "learner.schedule=cosine", "model.dtype=bfloat16",
)  # fmt: skip


@pytest.mark.parametrize("settings", [(), REAL_SIZE], ids=["plain", "real size"])
@pytest.mark.slow
def test_a_run_saves_adapters_only_and_resumes_to_the_bit(conf, tmp_path, monkeypatch, settings):
    from delaysim.run import experiment

    given = overrides(conf, tmp_path, f"model.lora.rank={RANK}", "learner.kl=0.01", *settings)
    assert run(make_config(*given), tmp_path / "whole").state == "done"
    train = experiment.Experiment._train

    def stop_then_train(self, asked, *meanwhile):
        self.stopping = asked.update == 2
        train(self, asked, *meanwhile)

    with monkeypatch.context() as patch:
        patch.setattr(experiment.Experiment, "_train", stop_then_train)
        assert run(make_config(*given), tmp_path / "cut").state == "interrupted"
    assert run(make_config(*given, "resume=must"), tmp_path / "cut").state == "done"
    files = [next((tmp_path / name).glob("checkpoints/*/model.safetensors")) for name in ("whole", "cut")]
    assert files[0].read_bytes() == files[1].read_bytes()
    for name in ("updates", "launches", "groups", "evals"):
        assert rows(tmp_path / "whole", name) == rows(tmp_path / "cut", name)
    saved = load_file(files[0])
    assert all(".lora_" in name for name in saved)
    assert sum(p.numel() for p in saved.values()) == 2 * RANK * (2 * 64 + 2 * 48 + 3 * 96)
    assert any(p.any() for name, p in saved.items() if ".lora_B." in name)
    assert load_config(tmp_path / "cut/config.yaml").model.lora == LoraConf(rank=RANK)
