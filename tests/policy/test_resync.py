"""What tells an engine with other weights from one that computes apart."""

import numpy as np
import pytest

from delaysim.errors import SamplerFailed
from delaysim.policy.resync import floor_of, require_same


def differences(typical, *others):
    """Of a fixed batch of 100 tokens, a few of which differ by more [nats]."""
    found = np.full((4, 25), typical)
    found.flat[: len(others)] = others
    return found


def test_one_token_that_moves_by_nats_is_other_weights_or_other_experts():
    """tiny_moe in bfloat16: 4.5 nats at one token, 0.014 in the median, and the weights are right."""
    found = differences(0.014, 4.5)
    require_same(found, floor_of(("bfloat16", "float32"), experts=True), 0, experts=True)
    with pytest.raises(SamplerFailed, match=r"differ from the learner's by 4.5 nats, above sampler.floor=1:"):
        require_same(found, floor_of(("bfloat16", "float32"), experts=False), 0, experts=False)


@pytest.mark.parametrize(("kinds", "typical"), [(("bfloat16", "float32"), 0.13), (("float32", "float32"), 4e-4)])
def test_other_weights_move_every_token(kinds, typical):
    """Of the median: weights 0.003 apart, all of them, in tiny_moe."""
    with pytest.raises(SamplerFailed, match=rf"by {typical:g} nats in the median, above sampler.floor="):
        require_same(differences(typical), floor_of(kinds, experts=True), 3, experts=True)


@pytest.mark.parametrize("experts", [False, True])
@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_what_is_no_number_is_never_the_same(broken, experts):
    with pytest.raises(SamplerFailed, match="after version 2 was published"):
        require_same(differences(broken), 1e9, 2, experts)


def test_the_coarser_side_sets_the_floor():
    for experts in (False, True):
        fine, mixed, coarse = (
            floor_of(kinds, experts) for kinds in (("float32",) * 2, ("float32", "bfloat16"), ("bfloat16",) * 2)
        )
        assert fine < mixed == coarse
