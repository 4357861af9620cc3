"""What an engine is given is a checkpoint: loaded anew it computes what the learner computes."""

import weakref

import pytest
import torch
from directories import build_model
from safetensors.torch import load_file, save_file

from delaysim.policy.lora import add_adapters
from delaysim.policy.published import published
from delaysim.settings.models import LoraConf

EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "decoder_sparse_step": 1}
FAMILIES = {
    "tied": ("Qwen3", {"tie_word_embeddings": True}),
    "untied": ("Qwen3", {"tie_word_embeddings": False}),
    "biases": ("Qwen2", {"tie_word_embeddings": True}),
    "experts": ("Qwen3Moe", EXPERTS | {"tie_word_embeddings": False}),
}
IDS = torch.arange(3, 23).view(2, 10)


def plain(name):
    family, settings = FAMILIES[name]
    return build_model(family, **settings).eval()


def adapted(name, dtype=torch.float32, **settings):
    """A model whose adapters say something: B is no longer 0."""
    pytest.importorskip("peft", reason="the extra lora is not installed")
    model = plain(name).to(dtype)
    add_adapters(model, LoraConf(alpha=6, **settings), 4, 0)
    rng = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in model.parameters():
            if p.requires_grad:
                p.add_(0.1 * torch.randn(p.shape, generator=rng))
    return model


def loaded(model, name, folder, untied):
    """A model of the architecture made from what is published, by transformers' own loader."""
    family, settings = FAMILIES[name]
    build_model(family, **settings | ({"tie_word_embeddings": False} if untied else {})).save_pretrained(folder)
    weights = {key: value.contiguous().clone() for key, value in published(model, untied)}
    assert set(weights) == set(load_file(folder / "model.safetensors"))
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    return type(model).from_pretrained(folder, dtype=model.dtype).eval()


@pytest.mark.parametrize("untied", [False, True])
@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("make", [plain, adapted])
def test_a_checkpoint_of_what_is_published_computes_the_same(make, name, untied, tmp_path):
    model = make(name)
    with torch.no_grad():
        ours, theirs = model(IDS).logits, loaded(model, name, tmp_path, untied)(IDS).logits
        base = plain(name)(IDS).logits
    assert float((ours - theirs).abs().max()) < 1e-5
    assert float((ours - base).abs().max()) > 0.05 or make is plain


def test_an_adapters_product_is_added_in_float32_and_rounded_once():
    """alpha / rank * B A, to bfloat16 weights of this size, to the bit; what has no adapter is the learner's own."""
    model = adapted("tied", torch.bfloat16, targets=["q_proj"])
    own, given = dict(model.named_parameters()), dict(published(model, False))
    for layer in (0, 1):
        at = f"model.layers.{layer}.self_attn"
        a, b = (own[f"{at}.q_proj.lora_{side}.default.weight"] for side in "AB")
        wanted = own[f"{at}.q_proj.base_layer.weight"].float() + 1.5 * (b @ a)
        assert torch.equal(given[f"{at}.q_proj.weight"], wanted.bfloat16())
        assert given[f"{at}.k_proj.weight"].data_ptr() == own[f"{at}.k_proj.weight"].data_ptr()
    assert {w.dtype for w in given.values()} == {torch.bfloat16}


def test_no_more_than_one_layer_is_merged_at_a_time():
    model = adapted("tied")
    own = {p.data_ptr() for p in model.parameters()}
    made, most = [], 0
    weights = published(model, False)
    for _, weight in weights:
        if weight.data_ptr() not in own:
            made.append(weakref.ref(weight))
        del weight
        most = max(most, sum(reference() is not None for reference in made))
    assert len(made) == 2 * 7
    assert 0 < most <= 7
