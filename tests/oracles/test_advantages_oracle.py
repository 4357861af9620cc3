"""Our advantages against the libraries'."""

import pytest
import torch
from oracles.batches import SEEDS, batches

from delaysim.estimators.advantage import STD_FLOOR, advantages

pytestmark = pytest.mark.oracle

VERL_FLOOR = 1e-6


def rewards_of(seed):
    """Binary rewards for even seeds, continuous ones for odd."""
    return [batch.rewards for batch in batches(seed)]


def ours(rewards, kind):
    return advantages(rewards, kind, torch.ones_like(rewards))


def close(found, wanted):
    return torch.allclose(found, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("kind", "scale"), [("group_norm", "group"), ("group_mean", "none")])
def test_trl(trl, kind, scale, seed):
    assert all(close(ours(rewards, kind), trl.advantages(rewards, scale)) for rewards in rewards_of(seed))


@pytest.mark.parametrize("seed", SEEDS)
def test_verl_group_norm(verl, seed):
    """Equal once the floor under the standard deviation is: verl's own is 1e-6, ours and TRL's 1e-4."""
    for rewards in rewards_of(seed):
        assert close(ours(rewards, "group_norm"), verl.advantages("grpo", rewards, epsilon=STD_FLOOR))
        std = rewards.std(1, keepdim=True)
        rescaled = ours(rewards, "group_norm") * (std + STD_FLOOR) / (std + VERL_FLOOR)
        assert close(rescaled, verl.advantages("grpo", rewards))


@pytest.mark.parametrize("seed", SEEDS)
def test_verl_group_mean(verl, seed):
    for rewards in rewards_of(seed):
        assert close(ours(rewards, "group_mean"), verl.advantages("grpo", rewards, norm_adv_by_std_in_grpo=False))


@pytest.mark.parametrize("seed", SEEDS)
def test_verl_leave_one_out(verl, seed):
    assert all(close(ours(rewards, "leave_one_out"), verl.advantages("rloo", rewards)) for rewards in rewards_of(seed))


@pytest.mark.parametrize("seed", SEEDS)
def test_length_norm_is_group_norm_of_reward_per_token(trl, seed):
    for batch in batches(seed):
        found = advantages(batch.rewards, "length_norm", batch.lengths)
        assert close(found, trl.advantages(batch.rewards / batch.lengths, "group"))


def test_rewards_include_equal_and_mixed_groups():
    spans = torch.cat([rewards.amax(1) - rewards.amin(1) for seed in SEEDS for rewards in rewards_of(seed)])
    assert 0 < int((spans == 0).sum()) < len(spans) / 2


def test_equal_rewards_in_single_precision(trl, verl):
    """A mean of equal rewards need not equal them: 0.1 eight times gives the libraries advantages, and us none."""
    rewards = torch.full((1, 8), 0.1, dtype=torch.float32)
    assert float(verl.advantages("grpo", rewards).abs().max()) == pytest.approx(7.4e-3, rel=0.01)
    assert float(trl.advantages(rewards, "group").abs().max()) == pytest.approx(7.5e-5, rel=0.01)
    assert not ours(rewards, "group_norm").any()


def test_verl_keeps_the_reward_of_a_lone_response(verl):
    """A group of one has no baseline there; here it needs an advantage without one."""
    rewards = torch.tensor([[0.7], [0.2]])
    assert close(verl.advantages("grpo", rewards) * (1 + VERL_FLOOR), ours(rewards, "reward"))
    assert close(verl.advantages("rloo", rewards), ours(rewards, "reward"))
