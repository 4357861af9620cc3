"""Without delay the simulated run is plain synchronous training, bit for bit."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from settings import rows, run, small_config

from delaysim.policy.codec import CharacterCodec
from delaysim.policy.layout import Row
from delaysim.policy.noise import GumbelNoise
from delaysim.policy.sample import Decoding, sample
from delaysim.policy.score import score
from delaysim.policy.tiny import load_tiny
from delaysim.settings.models import TinyModelConf
from delaysim.tasks.chain import Chain

B, G, N = 2, 4, 8


def synchronous_loop():
    """Sample, grade, step: no clock, no learner, no records. Returns weights, rewards and lengths of each update."""
    torch.set_num_threads(1)
    task, codec = Chain(), CharacterCodec()
    model = load_tiny(TinyModelConf(sft_steps=60), task, lambda *_: None).eval()
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.99), weight_decay=0.0, fused=True)
    history = []
    for n in range(N):
        rollouts, rewards = [], []
        for group in range(n * B, (n + 1) * B):
            problem = task.training(0, group)
            prompt = codec.encode_prompt(problem.prompt)
            noise = GumbelNoise(0, "sampling", [(group, 0, i) for i in range(G)], codec.vocabulary)
            responses = sample(model, [prompt], G, Decoding(48, 1.0, codec.stop_ids), noise)
            rollouts += [Row(prompt, response.tokens) for response in responses]
            rewards.append(
                [float(codec.decode(r.tokens)[-2:] == ">" + problem.answer and r.finished) for r in responses]
            )
        reward = torch.tensor(rewards, dtype=torch.float64)
        advantage = (reward - reward.mean(1, keepdim=True)) / (reward.std(1, keepdim=True) + 1e-4)
        advantage = advantage * (reward.amax(1, keepdim=True) > reward.amin(1, keepdim=True))
        scores = score(model, rollouts, 1.0, 16, 96)
        lengths = torch.tensor([len(row.response) for row in rollouts], dtype=torch.float64)
        weights = (advantage.flatten()[scores.row] * (1 / lengths / (B * G))[scores.row]).float()
        optimiser.zero_grad()
        (-(weights * scores.logp).sum()).backward()
        gradients = [p.grad for p in model.parameters()]
        norm = float(torch.stack([torch.linalg.vector_norm(g, dtype=torch.float64) for g in gradients]).norm())
        if norm > 0.3:
            torch._foreach_mul_(gradients, 0.3 / norm)
        optimiser.param_groups[0]["lr"] = 3e-4 * min(1, (n + 1) / 10)
        optimiser.step()
        history.append((reward.mean().item(), lengths.mean().item(), norm))
    return dict(model.named_parameters()), history


@pytest.fixture(scope="module")
def simulated(base_cache, tmp_path_factory):
    """One run with D=0 for each estimator."""
    folder = tmp_path_factory.mktemp("d0")
    for name in ("reinforce", "is", "grpo", "tic", "gmc"):
        assert run(small_config("D=0", f"estimator={name}"), folder / name).state == "done"
    return folder


def weights(path):
    (file,) = path.glob("checkpoints/*/model.safetensors")
    return load_file(file)


def test_d0_is_the_synchronous_loop(simulated):
    wanted, history = synchronous_loop()
    found = weights(simulated / "reinforce")
    assert wanted.keys() == found.keys()
    assert all(torch.equal(wanted[name], found[name]) for name in wanted)
    updates = rows(simulated / "reinforce", "updates")
    assert [(r["reward_mean"], r["length_mean"], r["grad_norm"]) for r in updates] == history


@pytest.mark.parametrize("name", ["is", "grpo", "tic", "gmc"])
def test_all_estimators_are_one_run_without_delay(simulated, name):
    first, second = weights(simulated / "reinforce"), weights(simulated / name)
    assert all(torch.equal(first[key], second[key]) for key in first)


def test_no_delay_differs_in_time_only(simulated, tmp_path):
    assert run(small_config("clock.pilot=4", suite="no_delay"), tmp_path).state == "done"
    fixed, synchronous = rows(simulated / "grpo", "updates"), rows(tmp_path, "updates")
    times = ("sim_time", "wait")
    strip = [{k: v for k, v in row.items() if k not in times} for row in fixed]
    assert [{k: v for k, v in row.items() if k not in times} for row in synchronous] == strip
    assert rows(simulated / "grpo", "groups") == rows(tmp_path, "groups")
    assert rows(simulated / "grpo", "evals") == rows(tmp_path, "evals")
    assert fixed[-1]["sim_time"] == N * 86


def test_synchronous_time_is_the_sum_of_the_slowest_groups(simulated, tmp_path):
    """no_delay, lam=1: each update lasts C_gen * longest / L_ref of its slowest group, and C_update."""
    run(small_config("clock.pilot=4", suite="no_delay"), tmp_path)
    l_ref = json.loads((tmp_path / "manifest.json").read_text())["law"]["l_ref"]
    longest = np.array([max(row["lengths"]) for row in rows(tmp_path, "launches")]).reshape(N, B).max(1)
    wanted = np.cumsum(np.maximum(0.05, longest / l_ref) * 85 + 1)
    assert [row["sim_time"] for row in rows(tmp_path, "updates")] == pytest.approx(wanted.tolist(), abs=1e-4)


def test_real_delays_are_the_fixed_ones(base_cache, tmp_path):
    run(small_config("D=3"), tmp_path)
    assert [row["delay_mean"] for row in rows(tmp_path, "updates")] == [min(n, 3) for n in range(N)]
    assert all(row["delay"] == min(row["update"], 3) for row in rows(tmp_path, "groups"))
    stale = [row["ess"] for row in rows(tmp_path, "updates") if row["update"] > 3]
    assert all(0 < value < 1 for value in stale)
