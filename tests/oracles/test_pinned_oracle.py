"""The libraries' losses of one small group, to nine digits. Their forms differ, so only gradients compare with ours."""

import pytest
import torch
from oracles.batches import pinned
from oracles.libraries import UNCAPPED

pytestmark = pytest.mark.oracle

WIDE = {"epsilon_high": 0.28}
SEQUENCE = {"importance_sampling_level": "sequence"}
TRL = [
    (0.302894187, {"loss_type": "grpo"}),
    (0.364420860, {"loss_type": "dapo", **WIDE}),
    (0.279982312, {"loss_type": "dr_grpo", "max_completion_length": 3}),
    (0.265483615, {**SEQUENCE, **WIDE}),
    (0.320035457, {**SEQUENCE, "epsilon_low": 3e-4, "epsilon_high": 4e-4}),
    (0.215256415, {"loss_type": "sapo"}),
    (0.006524581, {"loss_type": "cispo", "epsilon_high": 1.2}),
    (0.014444444, {"loss_type": "cispo", "epsilon_high": 0.2}),
    (0.130610975, {"loss_type": "vespo"}),
    (0.298484445, {"trainer": "gmpo"}),
]
VERL = [
    (0.302894187, "vanilla", "seq_mean_token_mean", {}),
    (0.364420860, "vanilla", "token_mean", {"clip_ratio_high": 0.28}),
    (0.279982312, "vanilla", "fixed_length", {"global_batch_info": {"loss_scale_factor": 3}}),
    (0.265483615, "gspo", "seq_mean_token_mean", {"clip_ratio_high": 0.28}),
    (0.215256415, "sapo", "seq_mean_token_mean", {}),
    (0.006524581, "cispo", "token_mean", {"clip_ratio_low": 1.0}),
    (0.298484443, "geo_mean", "token_mean", {}),
    (-0.060928578, "dppo_tv", "token_mean", {"clip_ratio_c": 20.0}),
]
# By method: seq_mean_token_sum, seq_mean_token_mean, token_mean; eps = 0.28.
WEIGHTED = {
    "is": (-1.097474987, -0.357756724, -0.487766661),
    "gmc": (-0.792829281, -0.258447809, -0.352368569),
    "tic": (-0.310272827, -0.095356004, -0.137899034),
    "tis": (0.153727173, 0.059310662, 0.068323188),
    "reinforce": (0.1625, 0.183333331, 0.072222222),
}
GRADIENTS = {"gmc": (-0.256288, 0.147865, 0.809407, -0.066440), "tic": (0, 0.204683, 0, -0.091970)}


@pytest.mark.parametrize(("loss", "call"), TRL)
def test_trl_losses(trl, loss, call):
    assert trl.run(pinned(), **call).loss == pytest.approx(loss, abs=2e-9)


@pytest.mark.parametrize(("loss", "name", "aggregation", "config"), VERL)
def test_verl_losses(verl, loss, name, aggregation, config):
    assert verl.run(name, pinned(), aggregation, **config).loss == pytest.approx(loss, abs=2e-8)


@pytest.mark.parametrize("method", WEIGHTED)
def test_verl_losses_of_weighted_responses(verl, method):
    weights = weights_of(verl, method)
    for aggregation, loss in zip(("sum", "mean"), WEIGHTED[method], strict=False):
        found = verl.run("reinforce", pinned(), f"seq_mean_token_{aggregation}", weights).loss
        assert found == pytest.approx(loss, abs=2e-8)
    assert verl.run("reinforce", pinned(), "token_mean", weights).loss == pytest.approx(WEIGHTED[method][2], abs=2e-8)


@pytest.mark.parametrize("method", GRADIENTS)
def test_verl_gradients_of_weighted_responses(verl, method):
    gradient = verl.run("reinforce", pinned(), "seq_mean_token_sum", weights_of(verl, method)).gradient
    assert gradient[0, :, 0].tolist() == pytest.approx(GRADIENTS[method], abs=1e-6)


def weights_of(verl, method):
    thresholds = {"is": UNCAPPED, "tic": "1e-12_1.28", "tis": 1.28}
    if method == "gmc":
        plain, shared = (verl.weights(pinned(), "sequence", UNCAPPED, normalise) for normalise in (False, True))
        return torch.minimum(plain, 1.28 * shared)
    return verl.weights(pinned(), "sequence", thresholds[method]) if method in thresholds else None


def test_weights_of_vespo(trl):
    batch = pinned()
    phi = trl.functions.gamma_weights(batch.advantage[0], batch.log_ratio[0], batch.mask[0], None)
    assert phi[:, 0].tolist() == pytest.approx([0.572809, 0.788627, 0.085147, 0.901551], abs=1e-6)


def test_responses_kept_by_off_policy_masking(trl):
    batch = pinned()
    kept = trl.functions.off_policy_mask(batch.advantage[0], batch.logp[0], batch.behaviour[0], batch.mask[0], 0.1)
    assert kept[:, 0].tolist() == [1, 0, 1, 1]


def test_advantages(trl, verl):
    rewards = torch.tensor([[1.0, 0.0, 0.0, 1.0]])
    assert float(trl.advantages(rewards, "group")[0, 0]) == pytest.approx(0.865875, abs=1e-6)
    assert float(verl.advantages("grpo", rewards)[0, 0]) == pytest.approx(0.866024, abs=1e-6)
