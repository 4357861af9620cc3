"""One update against a reference in plain torch, and what ends a run as collapsed."""

import numpy as np
import pytest
import torch

from delaysim.estimators import make
from delaysim.policy.codec import CharacterCodec
from delaysim.policy.rollout import Group, Response
from delaysim.policy.sample import Decoding
from delaysim.policy.tiny import load_tiny
from delaysim.settings.config import LearnerConf
from delaysim.settings.models import TinyModelConf
from delaysim.tasks.chain import Chain
from delaysim.train.learner import Collapsed, Learner

PROMPTS = [np.array([1, 4, 13, 5, 14], np.int32), np.array([1, 9, 13, 12, 13, 3, 14], np.int32)]


@pytest.fixture
def model(base_cache):
    torch.set_num_threads(1)
    return load_tiny(TinyModelConf(sft_steps=60), Chain(), lambda *_: None).eval()


def groups(model, version, shift=0.0):
    rng = np.random.default_rng(0)
    made = []
    for b, prompt in enumerate(PROMPTS):
        responses = []
        for _ in range(4):
            tokens = rng.integers(3, 17, size=int(rng.integers(1, 9))).astype(np.int32)
            logp = reference_logp(model, prompt, tokens).detach().numpy() + shift * rng.standard_normal(len(tokens))
            responses.append(Response(tokens, logp.astype(np.float32), True))
        made.append(Group(b, version, prompt, tuple(responses), (*map(float, rng.integers(0, 2, 3)), 1.0)))
    return made


def reference_logp(model, prompt, tokens):
    ids = torch.from_numpy(np.concatenate([prompt, tokens]).astype(np.int64))[None]
    logp = model(input_ids=ids).logits[0, len(prompt) - 1 : -1].log_softmax(-1)
    return logp.gather(1, torch.from_numpy(tokens.astype(np.int64))[:, None])[:, 0]


def learner(model, name="is", **settings):
    conf = LearnerConf(**{"lr": 1e-2, "warmup": 4, **settings})
    return Learner(model, make(name), conf, Decoding(48, 1.0, frozenset()))


def flat(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def test_updates_equal_plain_torch(model):
    """Three updates: group-normalised advantages, trajectory ratios, AdamW, linear warm-up, clipping by norm."""
    batches = [groups(model, 0, shift=0.1) for _ in range(3)]
    twin = load_tiny(TinyModelConf(sft_steps=60), Chain(), lambda *_: None).eval()
    optimiser = torch.optim.AdamW(twin.parameters(), lr=1e-2, betas=(0.9, 0.99), weight_decay=0.0)
    ours = learner(model)
    for n, batch in enumerate(batches, 1):
        outcome = ours.update(n, batch)
        loss = 0.0
        for group in batch:
            rewards = torch.tensor(group.rewards)
            advantage = (rewards - rewards.mean()) / (rewards.std() + 1e-4)
            for response, a in zip(group.responses, advantage, strict=True):
                logp = reference_logp(twin, group.prompt, response.tokens)
                rho = (logp.detach() - torch.from_numpy(response.logp)).sum().exp()
                loss = loss - rho * a * logp.mean() / 8
        optimiser.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(twin.parameters(), 0.3)
        optimiser.param_groups[0]["lr"] = 1e-2 * min(1, (n + 1) / 4)
        optimiser.step()
        assert outcome.grad_norm == pytest.approx(float(norm), rel=1e-4)
        assert outcome.lr == optimiser.param_groups[0]["lr"]
    assert (flat(model) - flat(twin)).abs().max() < 2e-4 * 3e-2 / 3e-3


@pytest.mark.parametrize("settings", [{"bucket": 1}, {"bucket": 3, "pack": 0}, {"pack": 500}])
def test_buckets_do_not_change_the_gradient(model, settings):
    batch = groups(model, 0, shift=0.1)
    norms = [learner(model, lr=1e-12, **s).update(3, batch).grad_norm for s in ({}, settings)]
    assert norms[0] == pytest.approx(norms[1], rel=1e-5)


def test_delay_0_is_measured_and_then_exact(model):
    batch = groups(model, 5)
    outcome = learner(model).update(5, batch)
    assert 0 < outcome.fresh_log_ratio < 1e-5
    assert torch.equal(outcome.batch.log_ratio, torch.zeros_like(outcome.batch.log_ratio))
    assert torch.equal(outcome.kappa, outcome.batch.mask)


def test_staler_groups_keep_their_log_ratio(model):
    first, second = groups(model, 5, shift=0.3)
    mixed = [first, Group(1, 3, second.prompt, second.responses, second.rewards)]
    batch = learner(model).update(5, mixed).batch
    assert batch.delays.tolist() == [0, 2]
    assert torch.equal(batch.log_ratio[0], torch.zeros_like(batch.log_ratio[0]))
    assert float(batch.log_ratio[1].abs().max()) > 0.1


def test_a_log_probability_that_is_not_finite_collapses_the_run_and_spares_the_weights(model):
    batch = groups(model, 0)
    bad = batch[1].responses[2]
    bad.logp[0] = np.nan
    before = flat(model)
    with pytest.raises(Collapsed, match="update 3, group 1: a log-probability is not finite"):
        learner(model).update(3, batch)
    assert torch.equal(flat(model), before)


def test_a_gradient_that_is_not_finite_collapses_the_run(model):
    optimiser = learner(model)
    batch, before = groups(model, 0, shift=0.1), flat(model)
    model.lm_head.weight.register_hook(lambda gradient: gradient * float("inf"))
    with pytest.raises(Collapsed, match="update 2: the gradient's norm is"):
        optimiser.update(2, batch)
    assert torch.equal(flat(model), before)


def test_equal_rewards_move_nothing(model):
    batch = [Group(g.group, 0, g.prompt, g.responses, (0.7,) * 4) for g in groups(model, 0, shift=0.2)]
    before = flat(model)
    assert learner(model).update(9, batch).grad_norm == 0.0
    assert torch.equal(flat(model), before)


def test_optimiser_state_survives_a_round_trip(model):
    first = learner(model)
    first.update(1, groups(model, 0, shift=0.1))
    twin = load_tiny(TinyModelConf(sft_steps=60), Chain(), lambda *_: None).eval()
    twin.load_state_dict(model.state_dict())
    second = learner(twin)
    second.load_optimiser_state({k: v.clone() for k, v in first.optimiser_state().items()})
    batch = groups(model, 0, shift=0.1)
    first.update(2, batch)
    second.update(2, batch)
    assert torch.equal(flat(model), flat(twin))


def test_codec_round_trip():
    codec = CharacterCodec()
    assert codec.decode([*codec.encode("48>2,23>5"), codec.EOS]) == "48>2,23>5"
    assert codec.encode_prompt("4+8=").tolist()[0] == codec.BOS
