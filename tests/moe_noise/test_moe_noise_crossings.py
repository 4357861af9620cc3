"""What estimators do on log-ratios made by hand: each at its own level."""

import numpy as np
import pytest
import torch

from delaysim.estimators import make
from delaysim.moe_noise.crossings import CASES, crossings, with_threshold
from delaysim.moe_noise.parts import Passes

T, D = 100, 4
ADVANTAGES = np.tile([1.0, -1.0], (2, 4))


def routed(log_ratio, drift=0.0):
    """All of the log-ratio from A to C is routing, but `drift` on each token."""
    zero = np.zeros((16, T))
    same = zero + drift
    return Passes(zero, zero, zero, same + log_ratio, same, same, {})


def acts(passes, *names):
    return crossings(passes, [make(name) for name in names], ADVANTAGES, D)


def test_equal_policies_are_acted_on_by_nobody():
    found = crossings(routed(0.0), with_threshold(), ADVANTAGES, D)
    assert {share for by_case in found.values() for share in by_case.values()} == {0.0}


def test_one_tipped_token_is_grpos_business_alone():
    """log r = 0.25 on one token of every response: beyond 1.2 for GRPO, sum below log 1.28, mean above GSPO's 4e-4."""
    one = np.zeros((16, T))
    one[:, 7] = 0.22
    found = acts(routed(one), "grpo", "gspo", "tic", "tis")
    assert found["grpo"]["alone"] == pytest.approx(0.5 / T), "good responses only: the clip above binds for A > 0"
    assert found["gspo"]["alone"] == 0.5
    assert found["tic"]["alone"] == found["tis"]["alone"] == 0


def test_the_product_adds_up_what_no_token_and_no_mean_of_gmpo_sees():
    found = acts(routed(0.003), "grpo", "gmpo", "tic", "gmc")
    assert found["grpo"]["none"] == found["gmpo"]["none"] == 0
    assert found["tic"]["none"] == found["gmc"]["none"] == 1, "100 * 0.003 > log 1.28"


@pytest.mark.parametrize(("cap", "expected"), [(1.3, 1.0), (1.4, 0.0)])
def test_a_cap_is_crossed_where_the_product_is_beyond_it(cap, expected):
    found = crossings(routed(0.003), [make("tis", cap=cap)], ADVANTAGES, D)
    assert found["tis"]["alone"] == expected, "e^0.3 = 1.35"


def test_what_routing_tips_is_told_from_what_drift_crosses_anyway():
    """Drift alone is e^0.2 on every product; routing adds 0.1 to the first half."""
    log_ratio = np.zeros((16, T))
    log_ratio[:8] = 0.001
    found = acts(routed(log_ratio, drift=0.002), "tic")["tic"]
    assert found == {"none": 0.5, "r2": 0.0, "r3": 0.0, "tipped": 0.5, "alone": 0.0}
    anyway = acts(routed(log_ratio, drift=0.003), "tic")["tic"]
    assert anyway == {"none": 1.0, "r2": 1.0, "r3": 1.0, "tipped": 0.0, "alone": 0.0}


def test_shorter_responses_cross_less_in_the_product_and_not_in_the_mean():
    estimators = [make("gspo"), make("tic")]
    for length, product in ((50, 0.0), (None, 1.0)):
        found = crossings(routed(0.003), estimators, ADVANTAGES, D, length)
        assert found["tic"]["none"] == product
        assert found["gspo"]["none"] == 0.5


def test_every_estimator_with_a_threshold_is_asked_and_no_other():
    names = [estimator.name for estimator in with_threshold()]
    assert {"grpo", "gspo", "tic", "gmc", "tis"} <= set(names)
    assert not {"is", "reinforce", "snis", "sapo"} & set(names)
    assert [e.level for e in with_threshold()] == sorted(
        (e.level for e in with_threshold()), key=("token", "sequence", "trajectory").index
    )


def test_large_noise_is_acted_on_by_all():
    noise = 5 * torch.randn(16, T, generator=torch.Generator().manual_seed(0)).double().numpy()
    found = crossings(routed(noise), with_threshold(), ADVANTAGES, D)
    assert all(set(by_case) == set(CASES) and by_case["alone"] > 0 for by_case in found.values())
