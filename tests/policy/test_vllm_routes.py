"""Experts as a vLLM engine names them, read from arrays of the shape and types that vLLM 0.32 documents."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, Qwen3Config, Qwen3MoeConfig

from delaysim.errors import SamplerFailed, UserError
from delaysim.policy.routing import MISSING
from delaysim.policy.vllm_routes import Mixture, mixture_of, routes_of, routes_of_all

DENSE_FIRST = Mixture(layers=(1, 3), depth=4, experts=16, chosen=2)
"""Layers 0 and 2 have no experts: their rows of vLLM's buffer are never written."""
SHAPE = {"vocab_size": 32, "hidden_size": 32, "intermediate_size": 32, "num_attention_heads": 1,
         "num_key_value_heads": 1, "head_dim": 32}  # fmt: skip


def recorded(tokens, mixture, kind):
    """What an engine would give: expert ids counted up, so that every one says where it belongs."""
    table = np.zeros((tokens, mixture.depth, mixture.chosen), kind)
    for place, layer in enumerate(mixture.layers):
        for slot in range(mixture.chosen):
            table[:, layer, slot] = (np.arange(tokens) * 5 + place * 3 + slot) % mixture.experts
    return table


def wanted(tokens, mixture):
    at, place, slot = np.ogrid[:tokens, : len(mixture.layers), : mixture.chosen]
    return (at * 5 + place * 3 + slot) % mixture.experts


@pytest.mark.parametrize(
    ("mixture", "kind"),
    [
        (DENSE_FIRST, np.uint8),
        (Mixture((0, 1), 2, 256, 8), np.uint8),  # id 255 is an expert
        (Mixture((0, 1), 2, 257, 8), np.uint16),
        (Mixture(tuple(range(61)), 61, 512, 10), np.uint16),
    ],
)
@pytest.mark.parametrize("tokens", [1, 2, 7, 600])
def test_each_id_lands_at_its_token_layer_and_choice(mixture, kind, tokens):
    """A response of one token has the prompt's rows alone; so has one that is a single prompt token longer."""
    routes = routes_of(recorded(tokens, mixture, kind), tokens, mixture)
    assert routes.dtype == np.int16
    assert np.array_equal(routes, wanted(tokens, mixture))


def test_layers_without_experts_leave_no_expert_0():
    """VLLM's buffer has zeros there, which are nobody's choice."""
    array = recorded(6, DENSE_FIRST, np.uint8) % 15 + 1
    array[:, [0, 2]] = 0
    assert (routes_of(array, 6, DENSE_FIRST) > 0).all()


@given(inputs=st.integers(1, 40), lost=st.integers(0, 40))
def test_rows_that_lack_are_the_first_and_missing(inputs, lost):
    """Of a prompt whose beginning was asked for before; what is there keeps its place from the end."""
    lost = min(lost, inputs)
    routes = routes_of(recorded(inputs, DENSE_FIRST, np.uint8)[lost:], inputs, DENSE_FIRST)
    assert (routes[:lost] == MISSING).all()
    assert np.array_equal(routes[lost:], wanted(inputs, DENSE_FIRST)[lost:])


def test_a_response_without_a_record_is_missing_throughout():
    routes = routes_of(None, 5, DENSE_FIRST)
    assert routes.dtype == np.int16
    assert np.array_equal(routes, np.full((5, 2, 2), MISSING))


@pytest.mark.parametrize(("kind", "nobody"), [(np.uint8, 255), (np.uint16, 65535), (np.int32, -1), (np.uint8, 16)])
def test_an_id_beyond_the_last_expert_makes_its_token_missing_in_that_layer(kind, nobody):
    """-1, narrowed as vLLM does it, is no expert; half a choice would let one expert be used twice."""
    array = recorded(4, DENSE_FIRST, kind)
    array[2, 3, 1] = nobody
    expected = wanted(4, DENSE_FIRST)
    expected[2, 1] = MISSING
    assert np.array_equal(routes_of(array, 4, DENSE_FIRST), expected)


@pytest.mark.parametrize(
    "shape",
    [
        (6, 4, 2),  # a row for the last sampled token
        (5, 2, 2),  # the layers with experts alone
        (5, 4, 3),
        (5, 8),
    ],
)
def test_other_shapes_end_the_run(shape):
    with pytest.raises(SamplerFailed, match=r"named experts of shape \[.*\], not at most \[5, 4, 2\]"):
        routes_of(np.zeros(shape, np.uint8), 5, DENSE_FIRST)


def test_a_batch_is_read_response_by_response():
    """Two responses to one prompt of 4 tokens, whose rows the second has from the prefix cache."""
    prompt = recorded(4, DENSE_FIRST, np.uint8)
    first, second = (np.concatenate([prompt, recorded(n, DENSE_FIRST, np.uint8)]) for n in (3, 1))
    routes = routes_of_all([first, None, second], [7, 6, 5], DENSE_FIRST)
    assert np.array_equal(routes[0][:4], routes[2][:4])
    assert np.array_equal(routes[0][4:], wanted(3, DENSE_FIRST))
    assert (routes[1] == MISSING).all()
    assert [len(r) for r in routes] == [7, 6, 5]


def test_an_engine_that_names_none_at_all_ends_the_run():
    """Else routing=r3 would be routing=none and say nothing."""
    with pytest.raises(SamplerFailed, match="asked for the experts it used and named none; use routing=none"):
        routes_of_all([None, None], [3, 4], DENSE_FIRST)


@pytest.mark.parametrize(
    ("settings", "layers"),
    [({}, (0, 1, 2, 3)), ({"decoder_sparse_step": 2}, (1, 3)), ({"mlp_only_layers": [0]}, (1, 2, 3))],
)
def test_a_models_layers_with_experts_are_found(settings, layers):
    config = Qwen3MoeConfig(**SHAPE, num_hidden_layers=4, num_experts=6, num_experts_per_tok=3,
                            moe_intermediate_size=16, **settings)  # fmt: skip
    assert mixture_of(AutoModelForCausalLM.from_config(config)) == Mixture(layers, 4, 6, 3)


def test_a_dense_model_is_refused():
    model = AutoModelForCausalLM.from_config(Qwen3Config(**SHAPE, num_hidden_layers=1))
    with pytest.raises(UserError, match="a model of type qwen3 has no experts; use routing=none"):
        mixture_of(model)
