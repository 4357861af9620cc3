"""Memory and disk as mode=plan estimates them, against models built and runs made."""

import json

import pytest
import torch
from directories import build_model, save
from learners import make, stale_groups, tiny_base
from settings import make_config, run, small_config
from transformers import DynamicCache, LlamaConfig, Qwen2Config, Qwen3Config, Qwen3MoeConfig
from transformers.models.auto import AutoModelForCausalLM

from delaysim.cli.plan import memory_lines, plan_one
from delaysim.policy.tiny import build_config
from delaysim.run.footprint import PROMPT_TOKENS, Footprint, at_once, engine, footprint, peaks
from delaysim.run.shape import shape_of
from delaysim.settings.models import PretrainedModelConf, TinyModelConf, TinyMoeConf

PUBLISHED = {"qwen3_1b7": 1_720_574_976, "qwen3_4b": 4_022_468_096, "qwen3_8b": 8_190_735_360}


def on_meta(config):
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


def count(model):
    return sum(p.numel() for p in model.parameters())


def preset(name, *more):
    return make_config(f"model={name}", "task=gsm8k", "task.path=x", "record.ratios=none", *more)


def config_of(shape, **more):
    """The transformers configuration of a shape."""
    return Qwen3Config(
        vocab_size=shape.vocabulary, hidden_size=shape.hidden, intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers, num_attention_heads=shape.heads, num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_dim, tie_word_embeddings=shape.tied, **more,
    )  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_presets_have_the_published_number_of_parameters(name):
    shape = shape_of(preset(name).model)
    assert shape.parameters == PUBLISHED[name] == count(on_meta(config_of(shape.conf)))


@pytest.mark.parametrize("conf", [TinyModelConf(), TinyModelConf(layers=3, kv_heads=4), TinyMoeConf(experts=6)])
def test_tiny_models_are_counted_to_the_last_parameter(conf):
    assert shape_of(conf).parameters == count(on_meta(build_config(conf)))


SMOLLM2 = {
    "vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30,
    "num_attention_heads": 9, "num_key_value_heads": 3, "tie_word_embeddings": True,
}  # fmt: skip
MIXTURE = {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 40, "head_dim": 32}
SMALL = {"vocab_size": 100, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3}


@pytest.mark.parametrize(
    "config",
    [
        LlamaConfig(**SMOLLM2),
        Qwen2Config(**SMALL, num_attention_heads=4, num_key_value_heads=2),
        Qwen3Config(**SMALL, num_attention_heads=4, num_key_value_heads=2, head_dim=32, tie_word_embeddings=True),
        Qwen3MoeConfig(**SMALL, num_attention_heads=4, num_key_value_heads=2, **MIXTURE),
    ],
    ids=lambda config: config.model_type,
)
def test_a_models_own_configuration_is_read_where_it_is_here(tmp_path, config):
    config.save_pretrained(tmp_path)
    found = shape_of(PretrainedModelConf(path=str(tmp_path)))
    assert found.parameters == count(on_meta(config))


def test_the_shape_of_the_smollm2_preset_is_that_of_its_architecture():
    conf = PretrainedModelConf(path="x", shape=preset("smollm2").model.shape)
    assert shape_of(conf).parameters == 134_515_008 == count(on_meta(LlamaConfig(**SMOLLM2)))


def test_families_that_are_not_counted_are_not_guessed(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt_neox", "hidden_size": 8}))
    cfg = make_config("model=pretrained", f"model.path={tmp_path}", "task=gsm8k", "task.path=x")
    assert footprint(cfg) is None
    assert "not known before its config.json is here" in memory_lines(cfg)[0]


@pytest.mark.parametrize("targets", [["all-linear"], ["q_proj", "down_proj"]])
def test_adapters_are_counted_as_peft_makes_them(targets):
    peft = pytest.importorskip("peft", reason="the extra lora is not installed")
    shape = shape_of(preset("qwen3_8b").model)
    model = on_meta(config_of(shape.conf))
    chosen = "all-linear" if targets == ["all-linear"] else targets
    model.add_adapter(peft.LoraConfig(r=16, target_modules=chosen, task_type="CAUSAL_LM"))
    assert shape.adapters(16, targets) == sum(p.numel() for name, p in model.named_parameters() if ".lora_" in name)


def nbytes(tensors):
    return sum(t.nbytes for t in tensors)


@pytest.mark.slow
def test_weights_gradients_moments_and_checkpoint_are_those_of_a_run(base_cache, tmp_path):
    size = footprint(small_config("D=1"))
    model = tiny_base()
    learner = make(model)
    learner.update(7, stale_groups(model))
    state = learner.optimiser_state()
    assert size.weights == nbytes(model.parameters())
    assert size.gradients == nbytes(p.grad for p in model.parameters())
    moments = {name: t for name, t in state.items() if "exp_avg" in name}
    assert size.optimiser == nbytes(moments.values())
    assert size.remembered == state["previous_gradient"].nbytes
    run(small_config("D=1"), tmp_path / "run")
    written = sum(file.stat().st_size for file in (tmp_path / "run").glob("checkpoints/*/*"))
    assert written == pytest.approx(size.checkpoint, rel=0.02)


def test_the_cache_is_that_of_the_largest_batch(base_cache):
    common = ("evaluation.problems=100", "evaluation.batch=20", "evaluation.samples=3")
    cfg = make_config(*common, "sampler.chunk=2", "G=4")
    cache, model = DynamicCache(), tiny_base()
    with torch.no_grad():
        model(input_ids=torch.ones(60, 48, dtype=torch.long), past_key_values=cache)
    assert footprint(cfg).kv_cache == sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)
    wide = make_config(*common, "sampler.chunk=9")
    assert footprint(wide).kv_cache == footprint(cfg).kv_cache * 72 / 60


def saved_bytes(model, ids):
    """Bytes the backward pass keeps of one forward pass, weights aside, every storage once."""
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = (storage.nbytes(), tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        model(input_ids=ids, use_cache=False).last_hidden_state.sum()
    return sum(size for size, _ in kept.values())


@pytest.mark.parametrize("wide", [96, 512])
def test_activations_are_what_autograd_saves_to_a_fifth(wide):
    conf = TinyModelConf(hidden_size=128, intermediate_size=wide, layers=4)
    config = build_config(conf)
    with torch.random.fork_rng():
        model = AutoModelForCausalLM.from_config(config).model
    cfg = make_config("model.hidden_size=128", f"model.intermediate_size={wide}", "model.layers=4", "B=2", "G=4", "D=1")
    measured = saved_bytes(model, torch.ones(8, 48, dtype=torch.long))
    assert footprint(cfg).activations == pytest.approx(measured, rel=0.2)


def test_what_each_setting_does_to_a_real_model():
    """Of 1.7B parameters: float32 weights, gradients and two moments take 16 bytes each; as docs/gpu.md says."""
    size, n = footprint(preset("qwen3_1b7")), PUBLISHED["qwen3_1b7"]
    assert (size.weights, size.gradients, size.optimiser, size.casts) == (4 * n, 4 * n, 8 * n, 2 * n)
    assert size.remembered == size.reference == 0
    assert size.checkpoint == 12 * n
    tokens = 16384
    assert size.activations == tokens * (28 * 4 * 2048 + 4 * 4 * 2048 + 2 * (2 * 2048 + 4 * 2048 + 6 * 1024 + 4 * 6144))
    assert size.logits == 151936 * (1024 * 6 * 4 + 2048 * 4)
    assert size.kv_cache == 2 * 28 * 1024 * 4 * 32 * (PROMPT_TOKENS + 3072)
    assert footprint(preset("qwen3_1b7", "learner.kl=0.1")).reference == 4 * n
    assert footprint(preset("qwen3_1b7", "rule=gac")).remembered == 4 * n
    whole = footprint(preset("qwen3_1b7", "learner.tokens=null", "learner.logits=null"))
    assert whole.activations == pytest.approx(size.activations * 64 * 3328 / tokens)
    assert whole.logits > 600e9


def test_adapters_leave_the_frozen_weights_alone():
    size = footprint(preset("qwen3_8b"))
    assert size.trained == 174_587_904
    assert size.weights == 2 * PUBLISHED["qwen3_8b"] + 4 * size.trained
    assert (size.gradients, size.optimiser, size.checkpoint) == tuple(k * 4 * size.trained for k in (1, 2, 3))
    assert footprint(preset("qwen3_8b", "learner.kl=0.1")).reference == 0


@pytest.mark.parametrize(("name", "fits"), [("qwen3_1b7", True), ("qwen3_4b", False), ("qwen3_8b", True)])
def test_the_plan_says_whether_a_model_fits_80_gb(name, fits):
    line = plan_one(preset(name, "plan.memory_gb=80")).notes[0]
    assert ("fits 80 GB" in line) == fits
    assert ("does NOT fit 80 GB" in line) != fits
    assert "plan.memory_gb=80 says whether" in memory_lines(preset(name, "devices=[cuda:63]"))[0]


def test_parts_add_up_to_the_peaks():
    size = footprint(preset("qwen3_1b7"))
    assert isinstance(size, Footprint)
    assert size.own == 0
    assert sum(size.parts.values()) == pytest.approx(size.learner + size.kv_cache)
    assert size.sampler == size.learner - size.activations - size.logits + size.kv_cache


BF16_TOKEN = {"qwen3_1b7": 2 * 28 * 1024 * 2, "qwen3_4b": 2 * 36 * 1024 * 2, "qwen3_8b": 2 * 36 * 1024 * 2}
"""Bytes of a token's keys and values in bfloat16: layers, width of all key heads."""


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.slow
def test_an_engine_has_bfloat16_weights_and_cache_of_its_own(name):
    """By default, adapters merged: nothing of them is beside the weights."""
    cfg = preset(name, "sampler=vllm")
    size = footprint(cfg)
    assert cfg.sampler.dtype == "bfloat16"
    assert size.own == 2 * PUBLISHED[name]
    assert size.kv_cache == BF16_TOKEN[name] * at_once(cfg) * (PROMPT_TOKENS + 3072)
    assert footprint(preset(name, "sampler=vllm", "sampler.dtype=float32")).kv_cache == 2 * size.kv_cache
    assert make_config("sampler=vllm", "D=1").sampler.dtype is None, "a float32 learner's engine is float32"


@pytest.mark.parametrize("name", PUBLISHED)
def test_an_engine_has_its_share_beside_the_learner(name):
    cfg = preset(name, "sampler=vllm")
    size = footprint(cfg)
    assert engine(cfg, size, 141e9) == pytest.approx(0.4 * 141e9)
    assert peaks(cfg, size, 141e9) == {"cuda:0": pytest.approx(size.learner + 0.4 * 141e9 + 2e9)}
    two = preset(name, "sampler=vllm", "devices=[cuda:0,cuda:1]")
    kept = size.weights + size.casts  # the model that recomputes what the engine drew
    assert peaks(two, size, 141e9) == {
        "cuda:0": pytest.approx(size.learner + 2e9), "cuda:1": pytest.approx(kept + 0.4 * 141e9 + 2e9)
    }  # fmt: skip
    small = preset(name, "sampler=vllm", "sampler.memory_share=0.02")
    one = BF16_TOKEN[name] * (PROMPT_TOKENS + 3072)
    assert engine(small, size, 80e9) == pytest.approx(size.own + one + 2e9), "what one response needs at least"


def test_the_plan_names_a_share_that_fits():
    given = ("qwen3_4b", "sampler=vllm", "plan.memory_gb=141")
    lines = memory_lines(preset(*given))
    assert "does NOT fit 141 GB" in lines[0]
    share = lines[-1].split("sampler.memory_share=")[1].split()[0]
    lines = memory_lines(preset(*given, f"sampler.memory_share={share}"))
    assert "fits 141 GB" in lines[0]
    held = int((float(share) * 141e9 - 2 * PUBLISHED["qwen3_4b"] - 2e9) / (BF16_TOKEN["qwen3_4b"] * 3328))
    assert f"(holds {held} responses at full length)" in lines[1]
    more = f"sampler.memory_share={float(share) + 0.01}"
    assert "does NOT fit" in memory_lines(preset(*given, more))[0]


def test_a_copy_in_bfloat16_is_counted_with_sampler_hf_too():
    plain, copied = (footprint(preset("qwen3_1b7", *more)) for more in ((), ("sampler.dtype=bfloat16",)))
    assert copied.own == 2 * PUBLISHED["qwen3_1b7"]
    assert copied.kv_cache == plain.kv_cache / 2
    peak = peaks(preset("qwen3_1b7", "sampler.dtype=bfloat16"), copied, 80e9)["cuda:0"]
    assert peak == max(copied.learner + copied.own, copied.resting + copied.own + copied.kv_cache) + 2e9


def test_older_weights_of_a_sampler_are_counted():
    """Its own copy, and one of what is trained while it is on its way; both are in the checkpoint."""
    settings = ("model=qwen3_1b7", "task=gsm8k", "task.path=x", "lam=1")
    plain, every, background, routers = (
        footprint(make_config(*settings, *lag, suite="simulated_async"))
        for lag in (
            (),
            ("clock.sync_every=2",),
            ("clock.sync_mode=background", "clock.sync_time=1"),
            ("routing.lag=2",),
        )
    )
    weights = plain.weights
    assert (plain.lagging, every.lagging, background.lagging) == (0, weights, 2 * weights)
    assert every.learner - plain.learner == weights
    assert (routers.lagging, routers.checkpoint) == (weights, plain.checkpoint)  # but for the routers, which are small
    assert (every.checkpoint - plain.checkpoint, background.checkpoint - plain.checkpoint) == (weights, 2 * weights)


def test_time_of_a_real_model_follows_its_assumed_speeds():
    """800 updates of 64 responses of 600 tokens, and evaluations; GMC scores its mini-batches a third more,
    and under autocast every launch is scored a third more."""
    plain, group = (plan_one(preset("qwen3_1b7", f"estimator={e}", "D=0")) for e in ("grpo", "gmc"))
    evaluated = (1 + 8) * 64 * (1 + 4)
    sampled, trained = (51200 + evaluated) * 600 / 1500, 51200 * (600 + PROMPT_TOKENS) / 12000
    assert plain.seconds == pytest.approx(sampled + trained * 4 / 3)
    assert group.seconds == pytest.approx(sampled + trained * 5 / 3)
    assert "speeds assumed in the model's yaml, 600 tokens a response" in plain.source


def test_a_directory_without_speeds_keeps_its_seconds(tmp_path):
    conf = save(tmp_path, build_model())
    cfg = make_config("model=pretrained", f"model.path={conf.path}", "task=gsm8k", "task.path=x", "updates=10", "D=0")
    assert plan_one(cfg).seconds == pytest.approx(60 * (10 + 2 * 64 * 2 / 3 / 64))
    assert footprint(cfg).parameters == count(build_model())
