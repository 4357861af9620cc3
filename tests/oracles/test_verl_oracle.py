"""Our gradients against verl 0.9.1's, method by method. verl adds 1e-8 to some denominators."""

import pytest
import torch
from oracles.agreement import Case, assert_agrees, shares, unit, worst
from oracles.batches import SEEDS, batches
from oracles.libraries import UNCAPPED

from delaysim.estimators.base import AGGREGATIONS
from delaysim.estimators.penalty import penalty

pytestmark = pytest.mark.oracle

TOLERANCE = 1e-7
MEAN, SUM, TOKENS, FIXED = "seq_mean_token_mean", "seq_mean_token_sum", "token_mean", "fixed_length"
WIDE = {"clip_ratio_low": 0.2, "clip_ratio_high": 0.28}
NARROW = {"clip_ratio_low": 3e-4, "clip_ratio_high": 4e-4}
CASES = [
    *(Case("grpo", aggregation, {}, {"name": "vanilla"}) for aggregation in AGGREGATIONS),
    Case("dapo", TOKENS, {}, {"name": "vanilla", **WIDE}),
    Case("drgrpo", FIXED, {}, {"name": "vanilla"}),
    Case("dualclip", TOKENS, {}, {"name": "vanilla", "clip_ratio_c": 3.0}),
    Case("cispo", TOKENS, {"cap": 1.5}, {"name": "cispo", "clip_ratio_low": 1.0, "clip_ratio_high": 0.5}),
    Case("sapo", MEAN, {}, {"name": "sapo"}),
    Case("gspo", MEAN, {}, {"name": "gspo", **NARROW}),
    Case("gspo", MEAN, {"eps": 0.28, "eps_low": 0.2}, {"name": "gspo", **WIDE}, "wide"),
    Case("gspo_token", MEAN, {}, {"name": "gspo", **NARROW}),
    Case("gspo_token", TOKENS, {}, {"name": "gspo", **NARROW}),
    Case("dppo", TOKENS, {}, {"name": "dppo_tv", "clip_ratio_c": 20.0}),
    Case("dppo", TOKENS, {"eps": 0.05, "cap": 1.5}, label="tight",
         theirs={"name": "dppo_tv", "clip_ratio_low": 0.05, "clip_ratio_high": 0.05, "clip_ratio_c": 1.5}),
    Case("gmpo", MEAN, {}, {"name": "geo_mean", "clip_ratio_low": 0.4, "clip_ratio_high": 0.4}),
]  # fmt: skip
WEIGHTED = [
    *(Case("is", aggregation, {}, {"level": "sequence", "threshold": UNCAPPED}) for aggregation in AGGREGATIONS),
    Case("tic", SUM, {"eps": 0.28}, {"level": "sequence", "threshold": "1e-12_1.28"}),
    Case("tis", MEAN, {"cap": 8.0}, {"level": "sequence", "threshold": 8.0}),
    Case("tis", SUM, {"cap": 1.28}, {"level": "sequence", "threshold": 1.28}, "tight"),
    Case("token_tis", TOKENS, {"cap": 2.0}, {"level": "token", "threshold": 2.0}),
    Case("mis", TOKENS, {"low": 0.5, "cap": 3.0}, {"level": "sequence", "threshold": "0.5_3.0"}),
    Case("icepop", TOKENS, {}, {"level": "token", "threshold": "0.5_5.0"}),
]
GROUPED = [
    Case("gmc", SUM, {"eps": 0.28}),
    Case("gmc", MEAN, {"eps": 0.05}, label="tight"),
    Case("gmc", SUM, {"eps": 1.0}, label="loose"),
]
SNIS = Case("snis", SUM)
RULES = [*CASES, *(case for case in WEIGHTED if case.method != "is"), *GROUPED, SNIS]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradient_is_that_of_the_loss(verl, case, seed):
    for batch in batches(seed):
        theirs = verl.run(batch=batch, aggregation=case.aggregation, **case.theirs)
        assert_agrees(batch, case, theirs.gradient, TOLERANCE)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", WEIGHTED, ids=str)
def test_gradient_is_that_of_the_weighted_loss(verl, case, seed):
    for batch in batches(seed):
        weights = verl.weights(batch, **case.theirs)
        theirs = verl.run("reinforce", batch, case.aggregation, weights)
        assert_agrees(batch, case, theirs.gradient, TOLERANCE)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_reinforce(verl, aggregation, seed):
    for batch in batches(seed):
        theirs = verl.run("reinforce", batch, aggregation)
        assert_agrees(batch, Case("reinforce", aggregation), theirs.gradient, TOLERANCE)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", GROUPED, ids=str)
def test_gmc_is_self_normalised_sampling_capped_by_the_plain_ratio(verl, case, seed):
    for batch in batches(seed):
        plain = verl.weights(batch, "sequence", UNCAPPED)
        weights = torch.minimum(plain, (1 + case.settings["eps"]) * normalised(verl, batch))
        theirs = verl.run("reinforce", batch, case.aggregation, weights)
        assert_agrees(batch, case, theirs.gradient, TOLERANCE)


@pytest.mark.parametrize("seed", SEEDS)
def test_snis(verl, seed):
    for batch in batches(seed):
        theirs = verl.run("reinforce", batch, SNIS.aggregation, normalised(verl, batch))
        assert_agrees(batch, SNIS, theirs.gradient, TOLERANCE)


def normalised(verl, batch):
    """verl's normalised weights of one group at a time: it normalises over all that it is given."""
    groups = [single(batch, index) for index in range(len(batch.mask))]
    return torch.cat([verl.weights(group, "sequence", UNCAPPED, normalise=True) for group in groups])


def single(batch, index):
    fields = ("logp", "behaviour", "mask", "rewards", "advantages", "delays", "versions")
    return type(batch)(*(getattr(batch, name)[index : index + 1] for name in fields))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize(("ours", "theirs"), [("k2", "k2"), ("k3", "k3"), ("k2", "k3+")])
def test_penalty(verl, ours, theirs, aggregation, seed):
    """verl's k3+ has the value of k3 and the gradient of k2."""
    for batch in batches(seed):
        found = penalty(batch, ours) * unit(batch, aggregation)
        assert worst(batch, found, verl.penalty(batch, theirs, aggregation).gradient, aggregation) <= TOLERANCE


@pytest.mark.parametrize("case", RULES, ids=str)
def test_batches_meet_the_rule_and_its_absence(case):
    cut, kept = shares(case)
    assert cut > 0.01
    assert kept > 0.1
