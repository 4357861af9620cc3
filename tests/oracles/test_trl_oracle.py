"""Our gradients against TRL 1.16.0's, method by method."""

import pytest
from oracles.agreement import Case, assert_agrees, shares, unit, worst
from oracles.batches import SEEDS, batches, every_batch

from delaysim.estimators.penalty import penalty

pytestmark = pytest.mark.oracle

TOLERANCE = 1e-9
MEAN, SUM, TOKENS, FIXED = "seq_mean_token_mean", "seq_mean_token_sum", "token_mean", "fixed_length"
SEQUENCE = {"importance_sampling_level": "sequence"}
WIDE = {"epsilon_low": 0.2, "epsilon_high": 0.28}
NARROW = {"epsilon_low": 3e-4, "epsilon_high": 4e-4}
CASES = [
    Case("grpo", MEAN, {"eps": 0.2}, {"loss_type": "grpo"}),
    Case("grpo", SUM, {"eps": 0.2}, {"loss_type": "luspo"}),
    Case("grpo", TOKENS, {"eps": 0.2}, {"loss_type": "bnpo"}),
    Case("dapo", TOKENS, {}, {"loss_type": "dapo", **WIDE}),
    Case("drgrpo", FIXED, {}, {"loss_type": "dr_grpo"}),
    Case("dualclip", MEAN, {"dual": 3.0}, {"loss_type": "grpo", "args": {"delta": 3.0}}),
    Case("cispo", TOKENS, {"cap": 1.5}, {"loss_type": "cispo", "epsilon_high": 1.5}),
    Case("sapo", MEAN, {}, {"loss_type": "sapo"}),
    Case("sapo", MEAN, {"tau_pos": 2.0, "tau_neg": 0.7}, label="other-taus",
         theirs={"loss_type": "sapo", "args": {"sapo_temperature_pos": 2.0, "sapo_temperature_neg": 0.7}}),
    Case("gspo", MEAN, {}, {**SEQUENCE, **NARROW}),
    Case("gspo", MEAN, {"eps": 0.28, "eps_low": 0.2}, {**SEQUENCE, **WIDE}, "wide"),
    Case("gspo_token", MEAN, {}, {**SEQUENCE, **NARROW}),
    Case("vespo", TOKENS, {}, {"loss_type": "vespo"}),
    Case("gmpo", MEAN, {}, {"trainer": "gmpo", "epsilon_low": 0.4, "epsilon_high": 0.4}),
    Case("opsm", MEAN, {"delta": 0.1}, {"off_policy_mask_threshold": 0.1}),
]  # fmt: skip
CORRECTED = [
    Case("tis", MEAN, {"cap": 8.0}, {"mode": "sequence_truncate", "low": None, "high": 8.0, "loss_type": "grpo"}),
    Case("mis", TOKENS, {}, {"mode": "sequence_mask", "low": None, "high": 3.0, "loss_type": "dapo"}),
    Case("mis", TOKENS, {"low": 0.5}, label="band",
         theirs={"mode": "sequence_mask", "low": 0.5, "high": 3.0, "loss_type": "dapo"}),
    Case("tic", SUM, {"eps": 0.28}, {"mode": "sequence_mask", "low": None, "high": 1.28, "loss_type": "luspo"}),
    Case("token_tis", TOKENS, {"cap": 2.0},
         {"mode": "token_truncate", "low": None, "high": 2.0, "loss_type": "dapo"}),
    Case("icepop", TOKENS, {}, {"mode": "token_mask", "low": 0.5, "high": 5.0, "loss_type": "dapo"}),
]  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradient_is_that_of_the_loss(trl, case, seed):
    for batch in batches(seed):
        assert_agrees(batch, case, trl.run(batch, **case.theirs).gradient, TOLERANCE)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", CORRECTED, ids=str)
def test_gradient_is_that_of_the_corrected_loss(trl, case, seed):
    """The weight that TRL gives to responses of another sampler, here of older weights."""
    for batch in batches(seed):
        assert_agrees(batch, case, trl.corrected(batch, **case.theirs).gradient, TOLERANCE)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("aggregation", "loss_type"), [(MEAN, "grpo"), (SUM, "luspo"), (TOKENS, "dapo"), (FIXED, "dr_grpo")]
)
def test_k3_penalty_adds_its_gradient(trl, aggregation, loss_type, seed):
    case = Case("grpo", aggregation)
    for batch in batches(seed):
        inputs = {"ref_per_token_logps": batch.reference}
        theirs = trl.run(batch, loss_type=loss_type, beta=0.04, inputs=inputs).gradient
        ours = case.weights(batch) + 0.04 * penalty(batch, "k3") * unit(batch, aggregation)
        assert worst(batch, ours, theirs, aggregation) <= TOLERANCE
        assert worst(batch, case.weights(batch), theirs, aggregation) > 1e-4


@pytest.mark.parametrize("case", CASES + CORRECTED, ids=str)
def test_batches_meet_the_rule_and_its_absence(case):
    cut, kept = shares(case)
    assert cut > 0.01
    assert kept > 0.1


def test_batches_visit_every_branch_of_the_clip():
    """Ratios below, inside and above 1 +- 0.2, for both signs of the advantage."""
    cells = {(sign, side): 0 for sign in (-1, 1) for side in (-1, 0, 1)}
    for batch in every_batch():
        side = (batch.ratio > 1.2).double() - (batch.ratio < 0.8).double()
        for sign, where in cells:
            cells[sign, where] += int(((side == where) & (batch.advantage.sign() == sign) & (batch.mask > 0)).sum())
    assert min(cells.values()) > 500, cells


def test_batches_stay_inside_the_libraries_clamps():
    extremes = [(float(b.log_ratio.abs().max()), float(b.log_rho.abs().max())) for b in every_batch()]
    tokens, sums = map(max, zip(*extremes, strict=True))
    assert 8 < tokens < 10
    assert 17 < sums < 18.4
