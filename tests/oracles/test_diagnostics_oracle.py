"""Divergences and effective sample sizes against verl's, as formulas of our log-ratios.

verl averages over tokens. Given each response as one token, its summed log-ratio, it averages over trajectories.
"""

import pytest
import torch
from oracles.batches import SEEDS, batch_of, batches, pinned
from oracles.libraries import UNCAPPED, rows

pytestmark = pytest.mark.oracle

VERL_FLOOR = 1e-8


def kl_mu_pi_k1(log_ratio):
    """KL(behaviour || current), the plain estimate: minus the mean log-ratio of behaviour's samples."""
    return -log_ratio.mean()


def kl_mu_pi_k3(log_ratio):
    """KL(behaviour || current), the estimate that is never negative."""
    return (log_ratio.exp() - log_ratio - 1).mean()


def ess(log_ratio):
    """Effective share of samples: 1 / mean of squared weights, the weights scaled to mean 1."""
    return log_ratio.exp().mean() ** 2 / (2 * log_ratio).exp().mean()


def tokens(batch):
    """Log-ratios of the tokens, flat: what a token-weighted average is taken over."""
    return batch.log_ratio[batch.mask > 0]


def repeated(batch):
    """Each trajectory's log-ratio once per token, flat: verl's sequence weights, which count long responses more."""
    return batch.log_rho.unsqueeze(-1).expand_as(batch.mask)[batch.mask > 0]


def merged(batch):
    """The same responses as one token each."""
    current, behaviour = ((values * batch.mask).sum(-1, keepdim=True) for values in (batch.logp, batch.behaviour))
    return batch_of(current, behaviour, torch.ones_like(current), batch.rewards, batch.advantages)


def measured(verl, batch):
    return verl.functions.compute_offpolicy_metrics(rows(batch.logp), rows(batch.behaviour), rows(batch.mask))


def measured_ess(verl, batch, level, log_ratio):
    """verl's, without the 1e-8 that it adds to the mean weight."""
    found = verl.corrected(batch, level, UNCAPPED)[1]["rollout_is_eff_sample_size"]
    return found / (1 + VERL_FLOOR / float(log_ratio.exp().mean())) ** 2


@pytest.mark.parametrize("seed", SEEDS)
def test_divergences_over_tokens(verl, seed):
    for batch in batches(seed):
        theirs = measured(verl, batch)
        assert theirs["kl"] == pytest.approx(float(kl_mu_pi_k1(tokens(batch))), rel=1e-7, abs=1e-12)
        assert theirs["k3_kl"] == pytest.approx(float(kl_mu_pi_k3(tokens(batch))), rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_divergences_over_trajectories(verl, seed):
    for batch in batches(seed):
        theirs = measured(verl, merged(batch))
        assert theirs["kl"] == pytest.approx(float(kl_mu_pi_k1(batch.log_rho)), rel=1e-7, abs=1e-12)
        assert theirs["k3_kl"] == pytest.approx(float(kl_mu_pi_k3(batch.log_rho)), rel=1e-7, abs=1e-12)
        assert theirs["chi2_seq"] == pytest.approx(float((2 * batch.log_rho).exp().mean()) - 1, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("seed", SEEDS)
def test_effective_sample_sizes(verl, seed):
    for batch in batches(seed):
        one_each = merged(batch)
        views = ((batch, "token", tokens(batch)), (batch, "sequence", repeated(batch)))
        for given, level, log_ratio in (
            *views,
            (one_each, "sequence", batch.log_rho),
            (one_each, "token", batch.log_rho),
        ):
            assert measured_ess(verl, given, level, log_ratio) == pytest.approx(float(ess(log_ratio)), rel=1e-7)


def test_the_three_effective_sample_sizes_differ(verl):
    batch = pinned()
    views = (
        (merged(batch), "sequence", batch.log_rho),
        (batch, "sequence", repeated(batch)),
        (batch, "token", tokens(batch)),
    )
    found = [measured_ess(verl, *view) for view in views]
    assert found == pytest.approx([0.548252, 0.636742, 0.878432], abs=1e-6)


def test_token_and_trajectory_divergences_differ(verl):
    batch = pinned()
    by_token, by_trajectory = measured(verl, batch), measured(verl, merged(batch))
    assert by_token["kl"] == pytest.approx(-0.65 / 9)
    assert by_trajectory["kl"] == pytest.approx(-0.1625)
    assert by_trajectory["k3_kl"] == pytest.approx(0.609342, abs=1e-6)
