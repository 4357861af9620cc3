"""A mini-batch trained on in micro-batches: the gradient of the whole, one graph at a time."""

import copy

import pytest
import torch
from learners import CODEC, gradient_of, make, rule, stale_groups, tiny_base, weights_of
from settings import run, small_config
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

from delaysim import estimators
from delaysim.estimators.base import AGGREGATIONS
from delaysim.policy.rollout import Group
from delaysim.train.diagnostics import group_rows, update_row

UPDATE = 7
PRECISION = {torch.float32: 1e-6, torch.float64: 1e-12}
SCOPES = {name: estimators.make(name).scope for name in estimators.discover()}


def double_precision():
    """A model that computes in float64 throughout; Qwen3 normalises in float32 whatever its weights are."""
    settings = {"num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "initializer_range": 0.2}
    config = GPTNeoXConfig(vocab_size=CODEC.vocabulary, hidden_size=32, **settings)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return GPTNeoXForCausalLM(config).double().eval()


@pytest.fixture(scope="module", params=PRECISION, ids=str)
def base(request, base_cache):
    return tiny_base() if request.param == torch.float32 else double_precision()


def with_a_fresh_one(groups):
    """Two stale groups, and a third at delay 0 whose recorded log-probabilities are off all the same."""
    first, second, third = groups
    return [first, second, Group(third.group, UPDATE, third.prompt, third.responses, third.rewards)]


@pytest.fixture(scope="module")
def groups(base):
    return with_a_fresh_one(stale_groups(base))


def trained(base, groups, name, updates=1, **settings):
    """The model after some updates, and the last outcome."""
    model = copy.deepcopy(base)
    learner = make(model, name, **settings)
    outcomes = [learner.update(UPDATE, groups) for _ in range(updates)]
    return model, outcomes[-1]


def assert_equal(base, groups, name="gmc", tokens=24, **settings):
    """The whole at once against micro-batches of 24 tokens: gradient, what the estimator saw, every column."""
    share = PRECISION[base.dtype]
    whole, wanted = trained(base, groups, name, **settings)
    split, found = trained(base, groups, name, tokens=tokens, **settings)
    assert split.dtype == base.dtype
    gradient = gradient_of(whole)
    assert float(gradient.norm()) > 1e-3
    assert float((gradient_of(split) - gradient).abs().max()) <= share * float(gradient.norm())
    for values, others in ((found.batch.logp, wanted.batch.logp), (found.kappa, wanted.kappa)):
        assert torch.allclose(values, others, rtol=10 * share, atol=10 * share)
    assert torch.allclose(found.batch.advantages, wanted.batch.advantages, rtol=100 * share, atol=100 * share)
    for row, other in zip(columns(found, groups), columns(wanted, groups), strict=True):
        assert row == {key: number if number is None else near(number, share) for key, number in other.items()}


def columns(outcome, groups):
    return [update_row(outcome, groups), *group_rows(outcome, groups, UPDATE)]


def near(number, share):
    return pytest.approx(number, rel=100 * share, abs=100 * share)


@pytest.mark.parametrize("name", SCOPES)
def test_every_estimator_has_the_gradient_of_the_whole(base, groups, name):
    assert_equal(base, groups, name)


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("name", ["grpo", "gmc", "m2po"])
def test_every_aggregation(base, groups, name, aggregation):
    assert_equal(base, groups, name, aggregation=aggregation)


@pytest.mark.parametrize("settings", [{"tokens": 1}, {"tokens": 40, "pack": 0}, {"tokens": 60, "bucket": 1}])
@pytest.mark.parametrize("name", ["grpo", "gmc"])
def test_every_way_to_split(base, groups, name, settings):
    assert_equal(base, groups, name, **settings)


@pytest.mark.parametrize("kind", ["k2", "k3"])
@pytest.mark.parametrize("name", ["tic", "gmc"])
def test_with_a_penalty_towards_the_base(base, groups, name, kind):
    """On the second update, when weights and base differ."""
    assert_equal(base, groups, name, kl=0.3, kl_penalty=kind, updates=2, lr=1e-3)


@pytest.mark.parametrize("name", ["decoupled", "a3po", "grpo", "gmc"])
def test_several_steps_on_one_mini_batch(base, groups, name):
    assert_equal(base, groups, name, updates_per_batch=3, lr=1e-3)


@pytest.mark.parametrize("rules", [("vcpo", {}), ("vcpo", {"baseline": "off"}), ("gac", {"low": -1.0, "high": 0.999})])
@pytest.mark.parametrize("name", ["tis", "snis"])
@pytest.mark.slow
def test_with_update_rules(base, groups, name, rules):
    assert_equal(base, groups, name, rule=rule(rules[0], **rules[1]), updates=2, lr=1e-3)


@pytest.fixture(scope="module")
def single(base_cache):
    """The tiny base with its groups."""
    model = tiny_base()
    return model, with_a_fresh_one(stale_groups(model))


def events(single, name, **settings):
    """Tokens of every pass through the model, negative where no graph is kept, and 0 for every backward pass."""
    (model, groups), seen = copy.deepcopy(single), []

    def forward(_module, _arguments, keywords, _output):
        seen.append(keywords["input_ids"].numel() * (1 if torch.is_grad_enabled() else -1))

    model.get_decoder().register_forward_hook(forward, with_kwargs=True)
    model.get_input_embeddings().weight.register_post_accumulate_grad_hook(lambda _: seen.append(0))
    make(model, name, **settings).update(UPDATE, groups)
    return seen


@pytest.mark.parametrize(("name", "passes"), [("grpo", 1), ("gmc", 2), ("m2po", 2), ("topr", 1)])
def test_one_graph_is_held_at_a_time_and_a_second_look_taken_only_where_the_scope_needs_it(single, name, passes):
    seen = events(single, name, tokens=40)
    looked, trained_on = [n for n in seen if n < 0], [n for n in seen if n >= 0]
    assert looked == [-n for n in trained_on[::2]] * (passes - 1)
    assert seen == looked + trained_on
    assert len(trained_on) > 6
    assert all(0 < n <= 40 for n in trained_on[::2])
    assert not any(trained_on[1::2])


def test_without_a_budget_the_mini_batch_is_scored_once(single):
    seen = events(single, "gmc", bucket=2, pack=0)
    assert all(n > 0 for n in seen[:-1])
    assert len(seen) == 7
    assert seen[-1] == 0


def test_a_second_look_is_taken_where_a_rule_replaces_the_advantages(single):
    assert min(events(single, "tis", tokens=40, rule=rule("vcpo"))) < 0
    assert min(events(single, "tis", tokens=40, rule=rule("vcpo", baseline="off"))) == 0


@pytest.mark.slow
def test_a_run_in_micro_batches_learns_what_the_whole_does(base_cache, tmp_path):
    """Eight updates of a run: weights differ by rounding only."""
    found = []
    for tokens in ("null", "30"):
        cfg = small_config("D=2", f"learner.tokens={tokens}", "lr=1e-4")
        assert run(cfg, tmp_path / tokens).state == "done"
        (file,) = (tmp_path / tokens).glob("checkpoints/*/model.safetensors")
        found.append(file.read_bytes())
    assert found[0] != found[1]
    whole, split = (torch.frombuffer(bytearray(text[-400_000:]), dtype=torch.float32) for text in found)
    assert float((whole - split).abs().max()) < 1e-4
    assert float((whole - split).norm()) < 1e-4 * float(weights_of(tiny_base()).norm())
