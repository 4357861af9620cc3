"""Log-probabilities in chunks of tokens: the same numbers and gradients, and never the logits of all tokens at once."""

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, Qwen3Config, Qwen3ForCausalLM

from delaysim.policy.layout import Row
from delaysim.policy.precision import autocast
from delaysim.policy.score import buckets, score, score_packs

VOCABULARY, WIDTH, CHUNK, TEMPERATURE = 3000, 16, 10, 0.7


def built(model_class, config):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return model_class(config).eval()


def qwen3(**settings):
    shape = {"hidden_size": WIDTH, "intermediate_size": 32, "num_hidden_layers": 2, "head_dim": 8}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "initializer_range": 0.3}
    return built(Qwen3ForCausalLM, Qwen3Config(vocab_size=VOCABULARY, **shape, **heads, **settings))


def double_precision():
    settings = {"num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32, "initializer_range": 0.3}
    return built(GPTNeoXForCausalLM, GPTNeoXConfig(vocab_size=VOCABULARY, hidden_size=WIDTH, **settings)).double()


MODELS = {
    "tied": (lambda: qwen3(tie_word_embeddings=True), 1e-6),
    "untied": (lambda: qwen3(tie_word_embeddings=False), 1e-6),
    "double": (double_precision, 1e-12),
}


def rows():
    rng = np.random.default_rng(0)
    return [
        Row(rng.integers(0, VOCABULARY, 5).astype(np.int32), rng.integers(0, VOCABULARY, n).astype(np.int32))
        for n in (30, 21, 1, 12)
    ]


def backward(model, chunk):
    """Scores of the rows, after the backward pass of a weighted sum."""
    batch = rows()
    (packs,) = buckets(model, batch, bucket=8, pack=0)
    model.zero_grad()
    scores = score_packs(model, batch, packs, TEMPERATURE, chunk)
    (scores.logp * torch.linspace(-1, 2, len(scores.logp)).to(scores.logp)).sum().backward()
    return scores


def scored(model, chunk):
    """Log-probabilities, entropies and gradient."""
    scores = backward(model, chunk)
    return scores.logp.detach(), scores.entropy, torch.cat([p.grad.flatten() for p in model.parameters()])


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("chunk", [1, CHUNK, 63, 64, 1000])
def test_chunks_change_nothing(kind, chunk):
    build, share = MODELS[kind]
    model = build()
    for found, wanted in zip(scored(model, chunk), scored(model, None), strict=True):
        assert float((found - wanted).abs().max()) <= share * float(wanted.abs().max())


def test_without_gradients_too():
    model = qwen3()
    with torch.no_grad():
        whole = score(model, rows(), TEMPERATURE, 8)
        (packs,) = buckets(model, rows(), 8, 0)
        chunked = score_packs(model, rows(), packs, TEMPERATURE, CHUNK)
    assert torch.allclose(chunked.logp, whole.logp, rtol=1e-6)
    assert torch.allclose(chunked.entropy, whole.entropy, rtol=1e-5)


class Largest(TorchDispatchMode):
    """Elements of the largest tensor any operation makes."""

    def __init__(self):
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        made = function(*arguments, **(keywords or {}))
        sizes = [leaf.numel() for leaf in tree_leaves(made) if isinstance(leaf, torch.Tensor)]
        self.elements = max([self.elements, *sizes])
        return made


@pytest.mark.parametrize("low", [False, True])
def test_the_largest_tensor_is_a_chunk_of_logits_or_the_head(low):
    """Forward and backward, under autocast as well; all 64 tokens at once would be 64 times the vocabulary."""
    model, found = qwen3(), {}
    for chunk in (None, CHUNK):
        with Largest() as largest, autocast(model.device, low):
            backward(model, chunk)
        found[chunk] = largest.elements
    assert found == {None: 64 * VOCABULARY, CHUNK: max(CHUNK, WIDTH) * VOCABULARY}


def test_under_autocast_the_heads_gradient_is_summed_over_chunks_in_float32():
    """Against the chunks' own gradients, added in float64: summing them in bfloat16 would be off by 2^-9."""
    model = qwen3(tie_word_embeddings=False)
    head, batch = model.get_output_embeddings(), rows()
    (packs,) = buckets(model, batch, 8, 0)

    def gradient(weights):
        model.zero_grad()
        with autocast(model.device, True):
            scores = score_packs(model, batch, packs, TEMPERATURE, CHUNK)
        (scores.logp * weights).sum().backward()
        return head.weight.grad.double()

    each = torch.eye(7).repeat_interleave(CHUNK, 1)[:, :64]
    wanted = sum(gradient(weights) for weights in each)
    assert float((gradient(torch.ones(64)) - wanted).norm()) < 1e-5 * float(wanted.norm())
