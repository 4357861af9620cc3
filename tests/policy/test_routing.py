"""Routers of a mixture of experts under hooks: what is forced is what is used, with the live router's weights."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from mixtures import DEEPSEEK, FAMILIES, PROMPTS, TEMPERATURE, at_random, conf, drawn, mixture, rows_of, scores_of

from delaysim.errors import UserError
from delaysim.policy.layout import Row
from delaysim.policy.routing import MISSING, Routing, routers
from delaysim.train.scoring import Scorer

DTYPES = [torch.float32, torch.bfloat16]
IDS = torch.arange(24).view(2, 12)


def passed(model, routing, experts=None):
    """Logits of IDS with these experts, and what the routers chose."""
    with torch.no_grad(), routing.watching():
        routing.force(experts)
        logits = model(input_ids=IDS, use_cache=False).logits
        return logits, routing.chosen().long()


def shuffled(experts):
    """Other experts at every position and layer."""
    return (experts + 1 + torch.arange(experts.shape[1])[:, None]) % 8


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", FAMILIES)
def test_replaying_its_own_experts_changes_no_bit(family, dtype):
    model = mixture(family, dtype)
    routing = Routing(model)
    plain, chosen = passed(model, routing)
    assert chosen.shape == (IDS.numel(), 3, model.config.num_experts_per_tok)
    again, _ = passed(model, routing, chosen)
    assert torch.equal(again, plain)
    other, _ = passed(model, routing, shuffled(chosen))
    assert float((other - plain).abs().max()) > 0.1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", FAMILIES)
def test_weights_are_gathered_as_the_family_weighs_them(family, dtype):
    """To the bit for what a router chose itself, over many positions: in bfloat16 two rules differ at few of them."""
    model = mixture(family, dtype)
    routing = Routing(model)
    hidden = torch.randn(20_000, 32, generator=torch.Generator().manual_seed(1)).to(dtype)
    router, _ = routers(model)[1]
    with torch.no_grad(), routing.watching():
        plain = router(hidden)
        own = next(part for part in plain if not part.is_floating_point())
        routing.force(own[:, None].repeat(1, 3, 1))
        for forced, chosen in zip(router(hidden), plain, strict=True):
            assert torch.equal(forced, chosen)


@pytest.mark.parametrize("renormalised", [True, False])
def test_forced_experts_are_used_with_their_weight_in_the_softmax_over_all(renormalised):
    """A block by hand: every expert's output, weighed by the live router, summed over the forced ones."""
    model = mixture(norm_topk_prob=renormalised, experts_implementation="eager")
    block, hidden = model.model.layers[1].mlp, torch.randn(7, 32, generator=torch.Generator().manual_seed(0))
    forced = torch.tensor([[0, 7], [3, 1], [5, 2], [6, 4], [1, 0], [7, 6], [2, 3]])
    routing = Routing(model)
    with torch.no_grad(), routing.watching():
        routing.force(forced[:, None].repeat(1, 3, 1))
        found = block(hidden[None])[0]
    chances = (hidden @ block.gate.weight.T).softmax(-1).detach()
    assert not torch.equal(chances.topk(2).indices.sort().values, forced.sort().values)
    wanted = torch.zeros_like(hidden)
    for position, experts in enumerate(forced.tolist()):
        total = sum(chances[position, e] for e in experts) if renormalised else 1.0
        for e in experts:
            gate, up = (block.experts.gate_up_proj[e] @ hidden[position]).chunk(2)
            out = block.experts.down_proj[e] @ (torch.nn.functional.silu(gate) * up)
            wanted[position] += (chances[position, e] / total * out).detach()
    assert float(wanted.norm()) > 0.1
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("family", ["Qwen3Moe", "Qwen2Moe", "GptOss"])
def test_the_routers_gradient_under_replay_is_that_of_finite_differences(family):
    """Along one direction in every router's weights, experts held at ones that the routers do not choose."""
    model = mixture(family, experts_implementation="eager")
    groups = at_random(drawn(model))
    rows = rows_of(groups, routes=True)
    routing = Routing(model)
    scorer = Scorer(model, conf(), TEMPERATURE, routing)
    weights = [next(p for p in router.parameters() if p.dim() == 2) for router, _ in routers(model)]
    directions = [torch.randn(w.shape, generator=torch.Generator().manual_seed(i)) for i, w in enumerate(weights)]

    def total():
        return scorer.score(rows, scorer.micro_batches(rows)).logp.double().sum()

    def moved(by):
        with torch.no_grad():
            for weight, direction in zip(weights, directions, strict=True):
                weight.add_(by * direction)
            found = float(total())
            for weight, direction in zip(weights, directions, strict=True):
                weight.sub_(by * direction)
        return found

    with routing.watching():
        gradients = torch.autograd.grad(total(), weights)
        slope = (moved(3e-3) - moved(-3e-3)) / 6e-3
    assert all(float(g.norm()) > 1e-3 for g in gradients)
    along = sum(float((g * d).sum()) for g, d in zip(gradients, directions, strict=True))
    assert along == pytest.approx(slope, rel=5e-3)


def test_where_experts_are_missing_the_router_chooses_and_never_expert_0():
    model = mixture()
    routing = Routing(model)
    plain, chosen = passed(model, routing)
    assert torch.equal(passed(model, routing, torch.full_like(chosen, MISSING))[0], plain)
    some = shuffled(chosen)
    some[5:] = MISSING
    wanted, other = shuffled(chosen), chosen.clone()
    wanted[5:] = passed(model, routing, some)[1][5:]
    assert torch.equal(passed(model, routing, some)[0], passed(model, routing, wanted)[0])
    other[:, :, 1] = MISSING  # part of a position's experts is no record of it
    other[:, :, 0] = 0
    assert torch.equal(passed(model, routing, other)[0], plain)


def test_a_record_of_another_shape_is_refused():
    model = mixture()
    routing = Routing(model)
    _, chosen = passed(model, routing)
    for wrong in (chosen[:, :2], chosen.repeat(1, 2, 1), chosen[:, 0]):
        with pytest.raises(ValueError, match="3 layers"):
            passed(model, routing, wrong)
    for wrong in (chosen[:-1], chosen[..., :1]):
        with pytest.raises(ValueError, match="the pass has"):
            passed(model, routing, wrong)
    (response, *_), prompt = drawn(model)[1].responses, PROMPTS[1]
    for wrong in (response.routes[:-1], response.routes[len(prompt) :], np.repeat(response.routes, 2, 0)):
        with pytest.raises(ValueError, match="brings experts of"):
            scores_of(model, [Row(prompt, response.tokens, wrong)])


def test_nothing_stays_behind():
    model = mixture()
    routing = Routing(model)
    plain, chosen = passed(model, routing)
    with pytest.raises(ValueError, match="the pass has"):
        passed(model, routing, shuffled(chosen)[:-1])
    assert not any(module._forward_hooks for module in model.modules())
    assert torch.equal(passed(model, routing)[0], plain)


def refusal(build):
    with pytest.raises(UserError) as error:
        build()
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_dense_model_has_nothing_to_route():
    message = refusal(lambda: Routing(mixture("Qwen3")))
    assert message.startswith("routing: a model of type qwen3 has no experts; use routing=none")


def test_a_router_that_weighs_by_sigmoids_is_recorded_but_not_replayed():
    model = mixture("DeepseekV3", experts_implementation="eager")
    routing = Routing(model)
    _, chosen = passed(model, routing)
    assert chosen.shape == (IDS.numel(), 3, DEEPSEEK["num_experts_per_tok"])
    for refused in (lambda: routing.force(chosen), routing.require_known_weights):
        assert "DeepseekV3TopkRouter does not weigh experts by a softmax" in refusal(refused)


def test_a_router_without_ids_is_named():
    model = mixture()
    for router, _ in routers(model):
        router.register_forward_hook(lambda _m, _i, output: output[:1])
    assert "Qwen3MoeTopKRouter does not return the experts" in refusal(lambda: Routing(model))


def test_rows_bring_their_experts_through_padding_packing_and_buckets():
    """Log-probabilities of responses forced to experts at random, alone and together, with prompts shared or not."""
    model = mixture()
    rows = rows_of(at_random(drawn(model)), routes=True)
    alone = [scores_of(model, [row])[0][0] for row in rows]
    for settings in ({"pack": 0}, {"pack": 200}, {"pack": 30, "bucket": 2}, {"pack": 0, "bucket": 5, "tokens": 40}):
        table, _ = scores_of(model, rows, **settings)
        for found, wanted in zip(table, alone, strict=True):
            torch.testing.assert_close(found[: len(wanted)], wanted, rtol=0, atol=3e-5)
    free, _ = scores_of(model, [replace(row, routes=None) for row in rows])
    assert float((free - table).abs().max()) > 0.1
