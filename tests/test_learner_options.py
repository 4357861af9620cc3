"""Several steps on one mini-batch, aggregation and advantages: what the learner does with each of its options."""

import copy
from contextlib import contextmanager

import pytest
import torch
from learners import (
    autograd,
    close,
    each,
    gradient_of,
    log_probabilities,
    make,
    moments,
    stale_groups,
    tiny_base,
    weights_of,
)
from settings import rows, run, small_config
from torch.nn.utils import vector_to_parameters
from torch.optim.optimizer import register_optimizer_step_pre_hook

from delaysim.policy.rollout import Group
from delaysim.ratios import read_frames

UPDATE, EPS, CAP = 7, 0.2, 1.5
PARAMS = {"eps": EPS, "cap": CAP}


@pytest.fixture(scope="module")
def base(base_cache):
    return tiny_base()


@pytest.fixture(scope="module")
def groups(base):
    """Two stale groups, and a third at delay 0 whose recorded log-probabilities are off all the same."""
    first, second, third = stale_groups(base)
    return [first, second, Group(third.group, UPDATE, third.prompt, third.responses, third.rewards)]


@contextmanager
def watched_steps():
    """Weights and gradient right before every optimiser step, as vectors."""
    steps = []

    def keep(optimiser, _arguments, _keywords):
        parameters = optimiser.param_groups[0]["params"]
        weights = torch.cat([p.detach().flatten() for p in parameters])
        steps.append((weights, torch.cat([p.grad.flatten() for p in parameters])))

    handle = register_optimizer_step_pre_hook(keep)
    yield steps
    handle.remove()


# several steps on one mini-batch


def areal_loss(model, groups, proximal):
    """-(sg(prox/mu) * min(u A, clip(u) A)) over all tokens, capped at CAP; and how many tokens were clipped."""
    tokens, loss, clipped = sum(sum(g.lengths) for g in groups), torch.zeros(()), 0
    for b, i, group, response in each(groups):
        rewards = torch.tensor(group.rewards)
        a = (rewards[i] - rewards.mean()) / (rewards.std() + 1e-4) * (rewards.max() > rewards.min())
        anchor = proximal[b, i]
        mu = anchor if group.version == UPDATE else torch.from_numpy(response.logp)
        u = (log_probabilities(model, group, response) - anchor).exp()
        behind = (anchor - mu).exp()
        inner = torch.minimum(u * a, u.clamp(1 - EPS, 1 + EPS) * a)
        clipped += int((inner != u * a).sum())
        loss = loss - (behind * (behind <= CAP) * inner).sum() / tokens
    return loss, clipped


def at(model, weights):
    other = copy.deepcopy(model)
    vector_to_parameters(weights, other.parameters())
    return other


def test_each_of_three_steps_follows_areals_loss(base, groups):
    """The proximal policy is the one before the first step, the behaviour stays, a fresh group's is the proximal."""
    with watched_steps() as steps:
        make(copy.deepcopy(base), "decoupled", PARAMS, aggregation="token_mean", updates_per_batch=3).update(
            UPDATE, groups
        )
    proximal = {(b, i): log_probabilities(base, g, r).detach() for b, i, g, r in each(groups)}
    assert len(steps) == 3
    clipped = []
    for weights, gradient in steps:
        model = at(base, weights)
        loss, count = areal_loss(model, groups, proximal)
        clipped.append(count)
        assert close(gradient, autograd(loss, model), 3e-5)
    assert clipped[0] == 0
    assert min(clipped[1:]) > 3


def test_the_steps_are_adamws_with_one_rate(base, groups):
    model = copy.deepcopy(base)
    learner = make(model, "decoupled", PARAMS, updates_per_batch=3, warmup=20, beta1=0.5, beta2=0.9)
    with watched_steps() as steps:
        outcome = learner.update(UPDATE, groups)
    assert outcome.lr == pytest.approx(1e-2 * 8 / 20, rel=1e-12)
    twin = torch.nn.Parameter(steps[0][0].clone())
    optimiser = torch.optim.AdamW([twin], lr=outcome.lr, betas=(0.5, 0.9), weight_decay=0.0)
    for weights, gradient in steps:
        assert torch.allclose(weights, twin.detach(), atol=1e-6)
        twin.grad = gradient
        optimiser.step()
    assert torch.allclose(weights_of(model), twin.detach(), atol=1e-6)
    assert {float(v) for name, v in moments(learner).items() if name.endswith("/step")} == {3.0}


@pytest.fixture(scope="module")
def outcomes(base, groups):
    """By number of steps, all from the same weights."""
    settings = {"name": "decoupled", "params": PARAMS}
    return {k: make(copy.deepcopy(base), **settings, updates_per_batch=k).update(UPDATE, groups) for k in (1, 2, 3)}


def test_a_fresh_groups_ratio_is_exactly_1_only_in_the_first_step(outcomes):
    present = outcomes[1].batch.mask > 0
    assert not outcomes[1].batch.log_ratio[2].any()
    assert torch.equal(outcomes[1].kappa[2], outcomes[1].batch.mask[2])
    for k in (2, 3):
        moved = outcomes[k].batch.log_ratio[2][present[2]]
        assert float(moved.abs().max()) > 0.05
        assert float((moved != 0).double().mean()) > 0.9


def test_behaviour_stays_and_proximal_is_the_first_steps(outcomes):
    first = outcomes[1].batch
    assert first.proximal is None
    assert torch.equal(first.anchor, first.logp)
    for k in (2, 3):
        batch = outcomes[k].batch
        assert torch.equal(batch.proximal, first.logp)
        assert torch.equal(batch.behaviour, first.behaviour)
        assert torch.equal(batch.behaviour[2], batch.proximal[2])
        assert torch.equal(batch.advantages, first.advantages)
        assert outcomes[k].fresh_log_ratio == outcomes[1].fresh_log_ratio > 0.1
    assert not torch.equal(outcomes[2].batch.logp, outcomes[3].batch.logp)


def test_one_step_of_decoupled_is_icepop_without_a_lower_bound_bit_for_bit(base, groups):
    models = [copy.deepcopy(base) for _ in range(3)]
    chosen = (("decoupled", {}, 1), ("icepop", {"low": 0.0, "cap": 5.0}, 1), ("decoupled", {}, 2))
    for model, (name, params, steps) in zip(models, chosen, strict=True):
        learner = make(model, name, params, updates_per_batch=steps)
        for update in range(UPDATE, UPDATE + 4):
            learner.update(update, groups)
    weights = [weights_of(model) for model in models]
    assert torch.equal(weights[0], weights[1])
    assert not torch.allclose(weights[0], weights[2], atol=1e-3)


# aggregation


@pytest.mark.parametrize("longest", [12, 31])
def test_fixed_length_divides_by_the_longest_response_allowed(base, groups, longest):
    found = {}
    for kind in ("fixed_length", "seq_mean_token_sum"):
        model = copy.deepcopy(base)
        make(model, "is", aggregation=kind, longest=longest).update(UPDATE, groups)
        found[kind] = gradient_of(model)
    assert close(longest * found["fixed_length"], found["seq_mean_token_sum"], 1e-6)


SHORT = ("D=1", "updates=1", "evaluation.every=null", "learner.clip=1e9")


def test_in_a_run_that_is_samplers_max_new_tokens(base_cache, tmp_path):
    norms = {}
    for kind in ("fixed_length", "seq_mean_token_sum"):
        run(small_config(*SHORT, "sampler.max_new_tokens=23", f"learner.aggregation={kind}"), tmp_path / kind)
        norms[kind] = rows(tmp_path / kind, "updates")[0]["grad_norm"]
    assert norms["seq_mean_token_sum"] == pytest.approx(23 * norms["fixed_length"], rel=1e-5)


# advantages

ADVANTAGES = {
    "signed_reward": lambda r, lengths: 2 * r - 1,
    "reward": lambda r, lengths: r,
    "group_mean": lambda r, lengths: r - r.mean(),
    "leave_one_out": lambda r, lengths: r - (r.sum() - r) / (len(r) - 1),
    "length_norm": lambda r, lengths: normalised(r / lengths),
    "group_norm": lambda r, lengths: normalised(r),
}


def normalised(scores):
    return (scores - scores.mean()) / (scores.std(ddof=1) + 1e-4)


def advantage(kind, rewards, lengths):
    scores = rewards / lengths if kind == "length_norm" else rewards
    silent = kind not in ("reward", "signed_reward") and scores.min() == scores.max()
    return 0 * rewards if silent else ADVANTAGES[kind](rewards, lengths)


@pytest.mark.parametrize("kind", ADVANTAGES)
@pytest.mark.slow
def test_advantages_of_a_run_are_their_formulas(base_cache, tmp_path, kind):
    """Read back from what the run trained on; exactly 0 where a group's scores are all equal, if they are centred."""
    run(small_config(*SHORT, "B=12", f"learner.advantage={kind}"), tmp_path / "run")
    mixed = 0
    for frame in read_frames(tmp_path / "run/ratios.bin"):
        for rewards, lengths, found in zip(frame.rewards, frame.lengths, frame.advantages, strict=True):
            wanted = advantage(kind, rewards, lengths)
            mixed += rewards.min() < rewards.max()
            assert found.tolist() == pytest.approx(wanted.tolist(), rel=1e-12, abs=1e-15)
            assert wanted.any() == found.any()
    assert mixed >= 3
