"""The parts of a log-ratio add up, and its numbers are what their names say."""

import numpy as np
import pytest

from delaysim.moe_noise.numbers import k3, numbers
from delaysim.moe_noise.parts import REPLAYS, Passes

SHAPE = 8, 64


def made(seed: int = 0, **given) -> Passes:
    rng = np.random.default_rng(seed)
    tables = {name: rng.normal(-2, 0.1, SHAPE) for name in ("a", "b", "b_a", "c", "c_b", "c_a")} | given
    return Passes(**{"flips": {}, **tables})


def test_the_parts_and_the_pairs_sum_to_the_whole_log_ratio():
    passes = made()
    whole = passes.c - passes.a
    assert sum(passes.parts().values()) == pytest.approx(whole, abs=1e-12)
    for replay in REPLAYS:
        pairs = passes.log_ratios(replay)
        assert pairs["ab"] + pairs["bc"] == pytest.approx(pairs["ac"], abs=1e-12)
    assert np.array_equal(passes.log_ratios("none")["ac"], whole)


def test_r2_leaves_a_to_b_untouched_and_r3_does_not():
    passes = made()
    none, r2, r3 = (passes.log_ratios(replay)["ab"] for replay in REPLAYS)
    assert np.array_equal(none, r2)
    assert not np.allclose(none, r3)


def test_flips_are_counted_by_pair_and_by_token():
    table = np.zeros((*SHAPE, 4), np.int8)
    table[0, 0], table[1, 1, 2] = 1, 1  # a token in all four layers, a token in one
    found = {n.name: n.value for n in numbers(made(flips={"ab": table}), 0)}
    assert found["flips_ab"] == pytest.approx(5 / (8 * 64 * 4))
    assert found["flips_ab_tokens"] == pytest.approx(2 / (8 * 64))
    assert "flips_bc" not in found


def test_spreads_are_those_of_tokens_means_and_products():
    sequence = np.arange(8.0)[:, None] / 64
    zero = np.zeros(SHAPE)
    passes = Passes(zero, zero, zero, np.repeat(sequence, 64, 1), zero, zero, {})
    found = {n.name: n.value for n in numbers(passes, 0)}
    expected = np.arange(8.0).std(ddof=1)
    assert found["std_routing_product"] == pytest.approx(expected)
    assert found["std_routing_sequence"] == pytest.approx(expected / 64)
    assert found["std_drift_product"] == found["std_engine_token"] == 0
    assert found["max_bc_none"] == pytest.approx(7 / 64)
    assert found["max_bc_r2"] == found["max_bc_r3"] == 0
    assert "slope_drift_mean" not in found


def test_k3_of_a_constant_log_ratio():
    assert k3(np.full(SHAPE, 0.3)) == pytest.approx(np.exp(0.3) - 1.3)
    assert k3(np.full(SHAPE, 1e-6)) == pytest.approx(5e-13, rel=1e-3), "no digits are lost to rounding"
