"""Where the libraries differ from us by design, in numbers: clamps, caps, denominators, defaults."""

from dataclasses import replace
from math import exp

import pytest
import torch
from oracles.agreement import Case
from oracles.batches import batch_of, pinned, random_batch, small
from oracles.libraries import UNCAPPED
from oracles.wheels import VERL, defaults

from delaysim.estimators.penalty import penalty

pytestmark = pytest.mark.oracle

MEAN, SUM, TOKENS = "seq_mean_token_mean", "seq_mean_token_sum", "token_mean"


def kappa(method, batch, **settings):
    return Case(method, SUM, settings).kappa(batch)[0, :, 0].tolist()


def implied(outcome, batch):
    """Coefficients that a library's gradient implies in a batch of one-token responses with advantages of 1 or -1."""
    return (-outcome.gradient * batch.advantage * batch.mask.sum())[0, :, 0].tolist()


def test_verl_drops_a_token_beyond_its_clamp_of_20(verl, trl):
    """It clamps inside the loss, so that such a token has no gradient; neither TRL nor we do."""
    batch = small([[25.0], [0.0]], [-1, 1])
    assert implied(verl.run("vanilla", batch, MEAN), batch) == pytest.approx([0, 1])
    assert implied(trl.run(batch), batch) == pytest.approx([exp(25), 1])
    assert kappa("grpo", batch) == pytest.approx([exp(25), 1])


def test_our_coefficients_saturate_at_30(trl):
    batch = small([[35.0], [0.0]], [-1, 1])
    assert implied(trl.run(batch), batch) == pytest.approx([exp(35), 1])
    assert kappa("grpo", batch) == pytest.approx([exp(30), 1])


def test_verl_holds_a_trajectory_between_20_and_minus_20(verl):
    batch = small([[-25.0], [25.0]], [1, 1])
    assert verl.weights(batch, "sequence", UNCAPPED)[0, :, 0].tolist() == pytest.approx([exp(-20), exp(20)])
    assert kappa("is", batch) == pytest.approx([exp(-25), exp(25)])


def test_verl_cannot_tell_two_outliers_of_a_group_apart(verl):
    batch = small([[25.0], [30.0], [0.0], [0.0]], [1, 1, -1, -1])
    assert verl.weights(batch, "sequence", UNCAPPED, normalise=True)[0, :2, 0].tolist() == pytest.approx([2, 2])
    share = 1 / (1 + exp(5))
    assert kappa("snis", batch)[:2] == pytest.approx([4 * share, 4 * (1 - share)])
    assert kappa("gmc", batch)[:2] == pytest.approx([1.28 * 4 * share, 1.28 * 4 * (1 - share)])


def test_verl_drops_a_sequence_beyond_its_clamp_of_10(verl, trl):
    batch = small([[12.0], [0.0]], [-1, 1])
    assert implied(verl.run("gspo", batch, MEAN), batch) == pytest.approx([0, 1])
    assert implied(trl.run(batch, importance_sampling_level="sequence"), batch) == pytest.approx([exp(12), 1])
    assert kappa("gspo", batch) == pytest.approx([exp(12), 1])


def test_trl_holds_vespo_above_a_ratio_of_1e_8(trl):
    batch = small([[-25.0], [0.0]], [1, -1])
    found = implied(trl.run(batch, loss_type="vespo"), batch)
    assert found == pytest.approx([exp(3 * (1 - 1e-8)) * 1e-16, 1])
    assert kappa("vespo", batch) == pytest.approx([exp(3 - 50), 1])


def test_epsilon_high_of_cispo_is_the_cap_in_trl_and_above_1_in_verl(trl, verl):
    """TRL's default of 0.2 leaves no token a weight above 0.2."""
    batch = small([[0.0], [-2.0], [1.0]], [1, 1, 1])
    assert implied(trl.run(batch, loss_type="cispo"), batch) == pytest.approx([0.2, exp(-2), 0.2])
    assert kappa("cispo", batch, cap=0.2) == pytest.approx([0.2, exp(-2), 0.2])
    assert implied(verl.run("cispo", batch, TOKENS, clip_ratio_low=1.0), batch) == pytest.approx([1, exp(-2), 1.2])
    assert kappa("cispo", batch, cap=1.2) == pytest.approx([1, exp(-2), 1.2])


def test_verl_clips_cispo_below_unless_told_not_to(verl):
    batch = small([[-2.0]], [1])
    assert implied(verl.run("cispo", batch, TOKENS), batch) == pytest.approx([0.8])


def test_vanilla_is_dual_clip_in_verl(verl):
    batch = small([[1.5], [0.0]], [-1, 1])
    dual = defaults(VERL, "verl/workers/config/actor.py", "ActorConfig")["clip_ratio_c"]
    assert implied(verl.run("vanilla", batch, MEAN, clip_ratio_c=dual), batch) == pytest.approx([0, 1])
    assert kappa("dualclip", batch) == pytest.approx([0, 1])
    assert kappa("grpo", batch) == pytest.approx([exp(1.5), 1])


def test_dppo_is_capped_at_3_by_the_settings_of_verl_and_at_20_by_its_function(verl):
    batch = small([[2.0]], [1], logp=-3.0)
    dual = defaults(VERL, "verl/workers/config/actor.py", "ActorConfig")["clip_ratio_c"]
    assert implied(verl.run("dppo_tv", batch, TOKENS, clip_ratio_c=dual), batch) == pytest.approx([3])
    assert kappa("dppo", batch) == pytest.approx([exp(2)])


@pytest.mark.parametrize("aggregation", [MEAN, SUM])
def test_verl_leaves_an_empty_response_out_of_the_mean(verl, trl, aggregation):
    """TRL and we divide by 4 responses, verl by the 3 with tokens."""
    batch = pinned()
    mask = batch.mask * torch.tensor([1.0, 0.0, 1.0, 1.0]).view(1, 4, 1)
    batch = batch_of(batch.logp * mask, batch.behaviour * mask, mask, batch.rewards, batch.advantages)
    ours = Case("grpo", aggregation).weights(batch)
    theirs = trl.run(batch, loss_type="grpo" if aggregation == MEAN else "luspo").gradient
    assert torch.allclose(-ours, theirs, rtol=1e-12)
    assert torch.allclose(-ours * 4 / 3, verl.run("vanilla", batch, aggregation).gradient, rtol=1e-7)


def test_verl_adds_1e_8_to_a_length(verl):
    batch = small([[0.0]], [1])
    assert 1 - implied(verl.run("vanilla", batch, MEAN), batch)[0] == pytest.approx(1e-8, rel=1e-6)


def test_verl_averages_sapo_over_responses_whatever_it_is_told(verl):
    found = [verl.run("sapo", pinned(), aggregation).loss for aggregation in (MEAN, TOKENS)]
    assert found == pytest.approx([0.215256415] * 2, abs=1e-8)


def test_verl_normalises_over_the_batch_and_we_over_the_group(verl):
    batch = random_batch("wide", 0)
    theirs = verl.weights(batch, "sequence", UNCAPPED, normalise=True)[..., 0]
    ours = Case("snis", SUM).kappa(batch)[..., 0]
    assert float(theirs.mean()) == pytest.approx(1, abs=1e-6)
    assert ours.mean(1).tolist() == pytest.approx([1, 1])
    assert abs(float(theirs.mean(1)[0]) - 1) > 0.1


def test_verl_bounds_the_k3_penalty_of_a_token_by_10(verl, trl):
    """Beyond it the penalty has no gradient."""
    batch = small([[0.0], [0.0]], [1, -1])
    batch = replace(batch, reference=batch.logp + torch.tensor([3.0, 1.0]).view(1, 2, 1))
    inputs = {"ref_per_token_logps": batch.reference}
    free = trl.run(batch, beta=1.0, inputs=inputs).gradient - trl.run(batch).gradient
    bounded = verl.penalty(batch, "k3", SUM).gradient
    assert (-2 * bounded).flatten().tolist() == pytest.approx([0, exp(1) - 1])
    assert (-2 * free).flatten().tolist() == pytest.approx([exp(3) - 1, exp(1) - 1])
    assert penalty(batch, "k3").flatten().tolist() == pytest.approx([exp(3) - 1, exp(1) - 1])


def test_trl_holds_temperatures_of_sapo_in_single_precision(trl):
    batch, case = random_batch("typical", 1), Case("sapo", MEAN)
    torch.set_default_dtype(torch.float32)
    gap = (trl.run(batch, loss_type="sapo").gradient + case.weights(batch)).abs().max()
    assert 1e-10 < float(gap / case.weights(batch).abs().max()) < 1e-7
