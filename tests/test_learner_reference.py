"""One update to the last digits: its gradient token by token, its norm, its step, and the columns it records."""

import copy
from math import exp, sqrt

import numpy as np
import pytest
import torch

from delaysim import estimators
from delaysim.measures import ess
from delaysim.policy.codec import CharacterCodec
from delaysim.policy.noise import GumbelNoise
from delaysim.policy.rollout import Group, Response
from delaysim.policy.sample import Decoding, sample
from delaysim.policy.tiny import load_tiny
from delaysim.settings.config import LearnerConf
from delaysim.settings.models import TinyModelConf
from delaysim.tasks.chain import Chain
from delaysim.train.diagnostics import group_rows, update_row
from delaysim.train.learner import Collapsed, Learner

CODEC = CharacterCodec()
TEMPERATURE, EPS = 0.8, 0.2
REWARDS = ((1.0, 0.0, 0.0, 0.25), (0.7, 0.7, 0.7, 0.7), (0.0, 1.0, 1.0, 0.0))


@pytest.fixture(scope="module")
def base(base_cache):
    torch.set_num_threads(1)
    return load_tiny(TinyModelConf(sft_steps=60), Chain(), lambda *_: None).eval()


@pytest.fixture(scope="module")
def groups(base):
    """Three groups sampled from the base and then made stale: their log-probabilities moved by up to 0.6."""
    prompts = [CODEC.encode_prompt(text) for text in ("1+2=", "4+8+3+9=", "7+7+7=")]
    noise = GumbelNoise(5, "test", [(b, 0, i) for b in range(3) for i in range(4)], CODEC.vocabulary)
    responses = sample(base, prompts, 4, Decoding(12, TEMPERATURE, CODEC.stop_ids), noise)
    rng = np.random.default_rng(0)
    moved = [
        Response(r.tokens, r.logp + rng.uniform(-0.6, 0.6, len(r.logp)).astype(np.float32), r.finished)
        for r in responses
    ]
    return [Group(10 + b, 2 * b, prompts[b], tuple(moved[4 * b : 4 * b + 4]), REWARDS[b]) for b in range(3)]


def make(model, name="gmc", params=None, **settings):
    conf = LearnerConf(**{"lr": 1e-2, "warmup": 0, "clip": 1e9, **settings})
    return Learner(model, estimators.make(name, **(params or {})), conf, Decoding(12, TEMPERATURE, frozenset()))


def log_probabilities(model, group, response):
    """Each response alone, no padding, no packing, in plain transformers."""
    ids = torch.from_numpy(np.concatenate([group.prompt, response.tokens]).astype(np.int64))[None]
    chances = (model(input_ids=ids).logits[0, len(group.prompt) - 1 : -1] / TEMPERATURE).log_softmax(-1)
    return chances.gather(1, ids[0, len(group.prompt) :, None])[:, 0]


def advantage(rewards):
    """(R - mean) / (std + 1e-4) with n - 1, 0 where all are equal; written without torch."""
    mean = sum(rewards) / len(rewards)
    std = sqrt(sum((r - mean) ** 2 for r in rewards) / (len(rewards) - 1))
    return [0.0 if max(rewards) == min(rewards) else (r - mean) / (std + 1e-4) for r in rewards]


def coefficient(name, log_ratio, group_mean, a):
    """kappa of one response's tokens by the papers' formulas."""
    rho = log_ratio.sum().exp()
    if name == "gmc":
        return rho * min(1.0, (1 + EPS) / group_mean)
    if name == "tic":
        return rho * float(rho <= 1 + EPS)
    r = log_ratio.exp()
    return r * ~(((a > 0) & (r > 1 + EPS)) | ((a < 0) & (r < 1 - EPS)))


def reference_gradient(model, name, groups, aggregation):
    """Gradient of -(sum over tokens of kappa * A * weight * log p), by autograd, flattened."""
    tokens = sum(sum(group.lengths) for group in groups)
    loss = torch.zeros(())
    for group in groups:
        logps = [log_probabilities(model, group, response) for response in group.responses]
        ratios = [lp.detach() - torch.from_numpy(r.logp) for lp, r in zip(logps, group.responses, strict=True)]
        mean = sum(float(ratio.sum().exp()) for ratio in ratios) / 4
        for lp, ratio, a in zip(logps, ratios, advantage(group.rewards), strict=True):
            kappa = coefficient(name, ratio, mean, a)
            share = {"seq_mean_token_mean": 1 / len(lp) / 12, "seq_mean_token_sum": 1 / 12, "token_mean": 1 / tokens}
            loss = loss - (kappa * a * lp).sum() * share[aggregation]
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))])


def gradient_of(model):
    return torch.cat([p.grad.flatten() for p in model.parameters()])


@pytest.mark.parametrize("name", ["gmc", "tic", "grpo"])
@pytest.mark.parametrize("aggregation", ["seq_mean_token_mean", "seq_mean_token_sum", "token_mean"])
def test_the_gradient_is_that_of_the_formula(base, groups, name, aggregation):
    model = copy.deepcopy(base)
    outcome = make(model, name, {"eps": EPS}, aggregation=aggregation, lr=1e-9).update(7, groups)
    wanted = reference_gradient(base, name, groups, aggregation)
    assert float(wanted.norm()) > 0.05
    assert float((gradient_of(model) - wanted).abs().max()) < 1e-5 * float(wanted.norm())
    assert outcome.grad_norm == pytest.approx(float(wanted.double().norm()), rel=1e-5)


@pytest.mark.parametrize(
    "settings", [{"bucket": 1}, {"bucket": 5}, {"pack": 0}, {"bucket": 1, "pack": 0}, {"pack": 400}]
)
def test_buckets_and_packs_do_not_change_the_gradient(base, groups, settings):
    gradients = []
    for chosen in ({}, settings):
        model = copy.deepcopy(base)
        make(model, lr=1e-9, **chosen).update(7, groups)
        gradients.append(gradient_of(model))
    assert float((gradients[0] - gradients[1]).abs().max()) < 1e-5 * float(gradients[0].norm())


def test_the_norm_is_taken_in_double_precision_before_clipping(base, groups):
    free, clipped = copy.deepcopy(base), copy.deepcopy(base)
    norm = make(free).update(7, groups).grad_norm
    assert norm == pytest.approx(float(gradient_of(free).double().norm()), rel=1e-12)
    assert make(clipped, clip=norm / 3).update(7, groups).grad_norm == norm
    assert torch.allclose(gradient_of(clipped), gradient_of(free) / 3, rtol=1e-5, atol=0)


@pytest.mark.parametrize("settings", [{}, {"weight_decay": 0.1}, {"beta1": 0.5, "beta2": 0.9}, {"clip": 0.05}])
def test_steps_are_adamw_with_warm_up(base, groups, settings):
    """From the very gradients the learner made, clipped: m and v corrected for their start, decay apart from them."""
    model = copy.deepcopy(base)
    learner = make(model, warmup=4, **settings)
    beta1, beta2 = settings.get("beta1", 0.9), settings.get("beta2", 0.99)
    weights = torch.cat([p.detach().flatten() for p in model.parameters()]).double()
    m, v = torch.zeros_like(weights), torch.zeros_like(weights)
    for n in range(6):
        outcome = learner.update(n + 6, groups) if n == 5 else learner.update(n, [_aged(g, n) for g in groups])
        lr = 1e-2 * (1 if n == 5 else min(1, (n + 1) / 4))
        assert outcome.lr == pytest.approx(lr, rel=1e-12)
        gradient = gradient_of(model).double()
        assert float(gradient.norm()) <= settings.get("clip", 1e9) * (1 + 1e-5)
        m, v = beta1 * m + (1 - beta1) * gradient, beta2 * v + (1 - beta2) * gradient**2
        step = m / (1 - beta1 ** (n + 1)) / ((v / (1 - beta2 ** (n + 1))).sqrt() + 1e-8)
        weights = weights * (1 - lr * settings.get("weight_decay", 0.0)) - lr * step
        found = torch.cat([p.detach().flatten() for p in model.parameters()])
        assert float((found - weights).abs().max()) < 1e-6 * (n + 1)


def _aged(group, update):
    return Group(group.group, update - 1 if update else -1, group.prompt, group.responses, group.rewards)


def test_reported_delays_and_log_ratios_are_those_of_each_group(base, groups):
    fresh = Group(groups[1].group, 7, groups[1].prompt, groups[1].responses, groups[1].rewards)
    outcome = make(copy.deepcopy(base)).update(7, [groups[0], fresh, groups[2]])
    assert outcome.batch.delays.tolist() == [7, 0, 3]
    seen = [
        float((log_probabilities(base, group, r).detach() - torch.from_numpy(r.logp)).abs().max())
        for group in groups
        for r in group.responses
    ]
    assert outcome.fresh_log_ratio == pytest.approx(max(seen[4:8]), abs=1e-5)
    assert not outcome.batch.log_ratio[1].any()
    assert float(outcome.batch.log_ratio[0].abs().max()) == pytest.approx(max(seen[:4]), abs=1e-5)
    assert torch.equal(outcome.kappa[1], outcome.batch.mask[1])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_collapse_names_update_and_group_and_changes_nothing(base, groups, value):
    model = copy.deepcopy(base)
    learner = make(model)
    learner.update(7, groups)
    weights = [p.detach().clone() for p in model.parameters()]
    moments = {k: t.clone() for k, t in learner.optimiser_state().items()}
    spoiled = groups[2].responses[1]
    logp = spoiled.logp.copy()
    logp[-1] = value
    bad = (groups[2].responses[0], Response(spoiled.tokens, logp, True), *groups[2].responses[2:])
    batch = [*groups[:2], Group(12, 4, groups[2].prompt, bad, groups[2].rewards)]
    with pytest.raises(Collapsed, match=r"^update 8, group 12: a log-probability is not finite$"):
        learner.update(8, batch)
    assert all(torch.equal(p, w) for p, w in zip(model.parameters(), weights, strict=True))
    after = learner.optimiser_state()
    assert after.keys() == moments.keys()
    assert all(torch.equal(after[k], moments[k]) for k in moments)


def test_a_gradient_too_large_to_be_a_number_changes_nothing(base, groups):
    model = copy.deepcopy(base)
    huge = [Group(g.group, g.version, g.prompt, g.responses, (1e300, 0.0, 0.0, 0.0)) for g in groups]
    with pytest.raises(Collapsed, match=r"^update 7: the gradient's norm is (nan|inf)$"):
        make(model, advantage="reward").update(7, huge)
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), base.parameters(), strict=True))


def test_a_ratio_beyond_the_bound_is_counted_and_trained_on_without_collapse(base, groups):
    model = copy.deepcopy(base)
    first = groups[0].responses[0]
    wild = Response(first.tokens, first.logp - 20, True)
    batch = [Group(10, 0, groups[0].prompt, (wild, *groups[0].responses[1:]), groups[0].rewards), *groups[1:]]
    outcome = make(model, "is").update(7, batch)
    row = update_row(outcome, batch)
    assert row["saturated"] == len(first.tokens)
    assert row["ratio_max"] == pytest.approx(exp(30), rel=1e-9)
    assert all(p.isfinite().all() for p in model.parameters())


def test_columns_are_what_they_are_called(base, groups):
    model = copy.deepcopy(base)
    outcome = make(model, "tic", {"eps": EPS}).update(7, groups)
    log_rho = np.array([[_log_rho(base, g, r) for r in g.responses] for g in groups])
    rho = np.exp(log_rho)
    lengths = np.array([g.lengths for g in groups])
    row = update_row(outcome, groups)
    wanted = {
        "reward_mean": np.mean(REWARDS),
        "delay_mean": 5.0,
        "delay_p50": 5.0,
        "delay_max": 7,
        "length_mean": lengths.mean(),
        "truncated": np.mean([not r.finished for g in groups for r in g.responses]),
        "mixed": 2 / 3,
        "ess": rho.sum() ** 2 / (rho**2).sum() / 12,
        "ratio_mean": rho.mean(),
        "ratio_median": np.sort(rho.ravel())[5],
        "ratio_max": rho.max(),
        "log_ratio_sd": log_rho.std(),
        "fresh_log_ratio": 0.0,
        "kept": (rho * (rho <= 1 + EPS)).mean(),
        "removed": (rho * (rho > 1 + EPS)).mean(),
        "saturated": 0,
        "tokens": lengths.sum(),
        "lr": 1e-2,
    }
    assert 0 < wanted["removed"] < rho.mean()
    for name, value in wanted.items():
        assert row[name] == pytest.approx(value, rel=1e-4, abs=1e-9), name
    per_group = group_rows(outcome, groups, 7)
    assert [(r["update"], r["group"], r["version"], r["delay"]) for r in per_group] == [
        (7, 10, 0, 7),
        (7, 11, 2, 5),
        (7, 12, 4, 3),
    ]
    assert [r["length_max"] for r in per_group] == lengths.max(1).tolist()
    assert [r["ratio_mean"] for r in per_group] == pytest.approx(rho.mean(1).tolist(), rel=1e-4)
    assert [r["reward_mean"] for r in per_group] == pytest.approx([np.mean(r) for r in REWARDS])


def _log_rho(model, group, response):
    return float((log_probabilities(model, group, response).detach().double() - torch.from_numpy(response.logp)).sum())


def test_effective_sample_size():
    """The pinned group has 2.19301 effective responses of 4; equal ratios all 4, whatever their size."""
    pinned = torch.tensor([[0.35, -0.2, 1.5, -1.0]], dtype=torch.float64)
    assert float(ess(pinned.flatten())) * 4 == pytest.approx(2.19301, abs=1e-5)
    assert float(ess(torch.full((2, 3), 5e3, dtype=torch.float64).flatten())) == pytest.approx(1.0, rel=1e-12)
    assert ess(torch.tensor([[1e4, -1e4, 0.0, 0.0]], dtype=torch.float64).flatten()) == 0.25
