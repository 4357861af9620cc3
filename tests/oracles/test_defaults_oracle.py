"""Settings that our files call published, against the defaults of the libraries."""

import pytest
from oracles.wheels import TRL, VERL, defaults

from delaysim.estimators import make

pytestmark = pytest.mark.oracle

PAIRS = [
    ("grpo", "eps", "epsilon"),
    ("sapo", "tau_pos", "sapo_temperature_pos"),
    ("sapo", "tau_neg", "sapo_temperature_neg"),
    ("vespo", "k_pos", "vespo_k_pos"),
    ("vespo", "lambda_pos", "vespo_lambda_pos"),
    ("vespo", "k_neg", "vespo_k_neg"),
    ("vespo", "lambda_neg", "vespo_lambda_neg"),
    ("mis", "cap", "vllm_importance_sampling_clip_max"),
]


@pytest.mark.parametrize(("method", "ours", "theirs"), PAIRS)
def test_trl(method, ours, theirs):
    assert getattr(make(method).params, ours) == defaults(TRL, "trl/trainer/grpo_config.py", "GRPOConfig")[theirs]


@pytest.mark.parametrize("side", ["eps", "eps_low"])
def test_trl_gmpo(side):
    theirs = defaults(TRL, "trl/experimental/gmpo/gmpo_config.py", "GMPOConfig")
    assert getattr(make("gmpo").params, side) == theirs["epsilon"]


@pytest.mark.parametrize(
    ("method", "ours", "theirs"),
    [
        ("dualclip", "eps", "clip_ratio"),
        ("dualclip", "dual", "clip_ratio_c"),
        ("sapo", "tau_pos", "tau_pos"),
        ("sapo", "tau_neg", "tau_neg"),
    ],
)
def test_verl(method, ours, theirs):
    assert getattr(make(method).params, ours) == defaults(VERL, "verl/workers/config/actor.py", "ActorConfig")[theirs]


def test_verl_token_tis():
    theirs = defaults(VERL, "verl/trainer/config/algorithm.py", "RolloutCorrectionConfig")
    assert make("token_tis").params.cap == theirs["rollout_is_threshold"]
