"""Every measure against the pinned group and closed forms: shares, tails, kept and removed mass, correlations."""

from dataclasses import replace
from math import exp, log, nan, sqrt

import numpy as np
import pytest
import torch
from estimators.batches import LOG_RATIO, batch_of, pinned, random_batch

from delaysim import measures
from delaysim.estimators import discover, make
from delaysim.policy.rollout import Group, Response
from delaysim.train.diagnostics import group_rows, update_row
from delaysim.train.learner import Outcome

RHO = [exp(sum(row)) for row in LOG_RATIO]


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def kept(name, batch=None, **settings):
    batch = pinned() if batch is None else batch
    return measures.kept(batch, make(name, **settings).coefficients(batch))


# effective sample sizes


def test_pinned_shares():
    batch = pinned()
    assert float(measures.ess(batch.log_rho)[0]) == pytest.approx(0.548252, abs=5e-7)
    assert float(measures.ess(batch.log_rho.flatten())) == pytest.approx(0.548252, abs=5e-7)
    assert measures.ess_token(batch.log_rho, batch.lengths) == pytest.approx(0.636742, abs=5e-7)
    assert float(measures.top_share(batch.log_rho)[0]) == pytest.approx(0.632349, abs=5e-7)
    assert exp(1.5) / sum(RHO) == pytest.approx(0.632349, abs=5e-7)


def test_pinned_share_of_what_is_kept():
    assert float(measures.ess(kept("tis", cap=2.0).log())[0]) == pytest.approx(0.777643, abs=5e-7)


@pytest.mark.parametrize("shift", [0.0, 5e3, -5e3])
def test_shares_by_hand_whatever_the_scale(shift):
    """Weights 1, 1, 2 and lengths 1, 2, 3."""
    weights, lengths = tensor([0.0, 0.0, log(2)]) + shift, tensor([1.0, 2.0, 3.0])
    assert float(measures.ess(weights)) == pytest.approx(16 / 3 / 6, rel=1e-12)
    assert measures.ess_token(weights, lengths) == pytest.approx((1 + 2 + 6) ** 2 / 6 / (1 + 2 + 12), rel=1e-11)
    assert float(measures.top_share(weights)) == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize("n", [1, 2, 7, 64])
def test_shares_at_their_ends(n):
    equal, alone = torch.full((n,), 3.0).double(), tensor([0.0, *[-1e4] * (n - 1)])
    assert float(measures.ess(equal)) == pytest.approx(1.0, rel=1e-12)
    assert float(measures.ess(alone)) == pytest.approx(1 / n, rel=1e-12)
    assert float(measures.top_share(equal)) == pytest.approx(1 / n, rel=1e-12)
    assert float(measures.top_share(alone)) == 1.0
    assert measures.ess_token(equal, torch.arange(1, n + 1).double()) == pytest.approx(1.0, rel=1e-12)


def test_shares_along_a_dimension_are_those_of_its_rows():
    table = random_batch(1).log_rho
    for measure in (measures.ess, measures.top_share):
        assert torch.allclose(measure(table), torch.stack([measure(row) for row in table]), rtol=1e-14)
        assert torch.allclose(measure(table, 0), measure(table.T), rtol=1e-14)


@pytest.mark.parametrize("seed", range(5))
def test_with_equal_lengths_tokens_count_like_responses(seed):
    log_w = random_batch(seed).log_rho
    assert measures.ess_token(log_w, torch.full_like(log_w, 9)) == pytest.approx(float(measures.ess(log_w.flatten())))


# the tail


def test_hill_by_hand():
    """Nine values: the three largest lie 4, 3 and 2 above the fourth. In any order, at any scale."""
    values = tensor([0.0, 5.0, 1.0, -3.0, 4.0, 0.5, -1.0, 3.0, 1.0])
    assert measures.hill(values) == pytest.approx(1 / 3, rel=1e-14)
    assert measures.hill(values.view(3, 3).T + 1e3) == pytest.approx(1 / 3, rel=1e-12)


@pytest.mark.parametrize("index", [0.7, 1.5, 3.0])
def test_hill_finds_the_index_of_pareto_samples(index):
    """1 / hill is a mean of k exponentials of mean 1 / index: unbiased, standard error 1 / (index sqrt k)."""
    rng = np.random.default_rng(int(10 * index))
    found = [1 / measures.hill(tensor(rng.exponential(1 / index, 10_000))) for _ in range(60)]
    assert np.mean(found) == pytest.approx(1 / index, rel=4 / sqrt(60 * 100))
    assert np.std(found) == pytest.approx(1 / index / 10, rel=0.4)


@pytest.mark.parametrize("values", [[0.3] * 8, list(range(8)), [2.0] * 20, [1.0] * 5 + [0.0] * 11])
def test_hill_is_none_with_too_few_or_equal_values(values):
    assert measures.hill(tensor(values)) is None


# what is kept


@pytest.mark.parametrize(
    ("name", "settings", "mass"),
    [
        ("gmc", {}, 0.491842),
        ("tis", {"cap": 1.28}, 0.835189),
        ("tic", {}, 1.475189),
        ("is", {}, 0.0),
        ("reinforce", {}, sum(max(r - 1, 0) for r in RHO) / 4),
    ],
)
def test_pinned_removed_mass(name, settings, mass):
    assert float(measures.removed(pinned(), kept(name, **settings)).mean()) == pytest.approx(mass, abs=1e-6)


def test_kept_weight_removed_and_second_moment_by_hand():
    batch, alpha = pinned(), 1.28 / (sum(RHO) / 4)
    mean = kept("gmc")
    assert mean[0].tolist() == pytest.approx([alpha * r for r in RHO], rel=1e-12)
    assert measures.weight(batch, mean)[0].tolist() == pytest.approx([alpha] * 4, rel=1e-12)
    assert measures.removed(batch, mean)[0].tolist() == pytest.approx([(1 - alpha) * r for r in RHO], rel=1e-12)
    held = replace(batch, advantages=tensor([[0.5, -2.0, 0.0, 1.0]]))
    wanted = [(alpha * r * a) ** 2 for r, a in zip(RHO, (0.5, -2.0, 0.0, 1.0), strict=True)]
    assert measures.second_moment(held, mean)[0].tolist() == pytest.approx(wanted, rel=1e-12)


def test_kept_is_the_mean_over_a_responses_own_tokens():
    """GRPO on the pinned group: r where PPO's clip does not bind, over lengths 3, 2, 3 and 1."""
    e = [[exp(x) for x in row] for row in LOG_RATIO]
    wanted = [(e[0][0] + e[0][1]) / 3, e[1][1] / 2, sum(e[2]) / 3, e[3][0]]
    assert kept("grpo")[0].tolist() == pytest.approx(wanted, rel=1e-12)


# agreement with importance sampling


@pytest.mark.parametrize("spread", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("seed", range(10))
def test_gmc_agrees_wholly_and_others_by_their_angle(seed, spread):
    """The angle between two long vectors of kappa * A and rho * A, one entry a token."""
    batch = random_batch(seed, spread=spread)
    for name in ("gmc", "is"):
        assert measures.agreement(batch, make(name).coefficients(batch)).tolist() == pytest.approx([1.0] * 3, rel=1e-12)
    for name in ("tic", "grpo", "reinforce", "gspo"):
        kappa = make(name).coefficients(batch)
        ours = (kappa * batch.advantage).flatten(1).numpy()
        theirs = (batch.log_rho.exp()[:, :, None] * batch.mask * batch.advantage).flatten(1).numpy()
        with np.errstate(invalid="ignore"):
            wanted = (ours * theirs).sum(1) / np.sqrt((ours**2).sum(1) * (theirs**2).sum(1))
        assert measures.agreement(batch, kappa).tolist() == pytest.approx(wanted.tolist(), rel=1e-9, nan_ok=True)


def test_agreement_does_not_exist_without_a_direction():
    batch = random_batch(0)
    silent = replace(batch, advantages=batch.advantages * tensor([[1.0], [0.0], [1.0]]))
    found = measures.agreement(silent, make("gmc").coefficients(silent)).tolist()
    assert found == pytest.approx([1.0, nan, 1.0], nan_ok=True)
    assert measures.agreement(batch, 0 * batch.mask).isnan().all()


def test_agreement_by_hand():
    """One-token responses, rho = 1 and 3, A = 1 and -1, kappa = 1 and 1: (1 + 3) / sqrt(2 * 10)."""
    delta = tensor([0.0, log(3)]).view(1, 2, 1)
    batch = batch_of(delta - 5, 0 * delta - 5, torch.ones_like(delta), tensor([[1.0, -1.0]]))
    assert float(measures.agreement(batch, batch.mask)) == pytest.approx(4 / sqrt(20), rel=1e-12)
    shifted = replace(batch, logp=batch.logp + 700)
    assert float(measures.agreement(shifted, batch.mask)) == pytest.approx(4 / sqrt(20), rel=1e-12)


# intervention


def outcome_of(batch, kappa, level):
    """An update's outcome and its groups, as the records see them."""
    tokens = [[np.ones(int(n), np.int32) for n in row] for row in batch.lengths]
    made = [[Response(t, t.astype(np.float32), True) for t in row] for row in tokens]
    rewards = batch.rewards.tolist()
    groups = [Group(b, 0, np.ones(1, np.int32), tuple(r), tuple(rewards[b])) for b, r in enumerate(made)]
    return Outcome(batch, kappa, level, 0.0, 1.0, 1.0, None, 1e-3), groups


def touched(batch, kappa, level):
    """(intervention, clip_fraction) of the mini-batch, then of each of its groups."""
    outcome, groups = outcome_of(batch, kappa, level)
    found = [update_row(outcome, groups), *group_rows(outcome, groups, 3)]
    return [(row["intervention"], row["clip_fraction"]) for row in found]


@pytest.mark.parametrize("level", ["token", "sequence", "trajectory", "none"])
def test_touched_is_what_differs_from_the_plain_ratio_of_its_level(level):
    """The pinned group, 9 tokens: one token of the first response moved by 2 %, both of the second by .9 %."""
    delta, lengths = LOG_RATIO, [3, 2, 3, 1]
    plain = {
        "token": [[exp(x) for x in row] for row in delta],
        "sequence": [[exp(sum(row) / n)] * n for row, n in zip(delta, lengths, strict=True)],
        "trajectory": [[exp(sum(row))] * n for row, n in zip(delta, lengths, strict=True)],
        "none": [[1.0] * n for n in lengths],
    }[level]
    plain = [[*row, *[0.0] * (3 - len(row))] for row in plain]
    batch, kappa = pinned(), tensor([plain])
    assert touched(batch, kappa, level) == [(0.0, 0.0)] * 2
    kappa[0, 0, 1] *= 1.02
    kappa[0, 1] *= 0.991
    assert touched(batch, kappa, level) == [(1 / 4, 1 / 9)] * 2
    kappa[0, 2] = 0
    assert touched(batch, kappa, level) == [(2 / 4, 4 / 9)] * 2


def test_touched_by_group():
    """TIC: the first group stays below 1.28, of the second one response of 3 tokens is dropped, of 8 tokens in all."""
    low, mask = tensor([[[0.1, 0.1, 0.0], [0.0, 0.0, 0.0]]]), tensor([[[1.0, 1, 0], [1, 0, 0]]])
    high, wide = tensor([[[0.1, 0.1, 0.1], [-0.1, -0.1, 0.0]]]), tensor([[[1.0, 1, 1], [1, 1, 0]]])
    delta, mask = torch.cat([low, high]), torch.cat([mask, wide])
    batch = batch_of(-mask + delta * mask, -mask, mask, tensor([[1.0, -1.0]] * 2), rewards=tensor([[1.0, 0.0]] * 2))
    found = touched(batch, make("tic").coefficients(batch), "trajectory")
    assert found == [(1 / 4, 3 / 8), (0.0, 0.0), (1 / 2, 3 / 5)]


def test_the_delays_of_a_mini_batch():
    """Ten groups at 0, 1, 4, 9 ... 81: quantiles between neighbours, as numpy has them."""
    delta = torch.zeros(10, 2, 1, dtype=torch.float64)
    delays = [n * n for n in range(10)]
    batch = batch_of(delta - 1, delta - 1, delta + 1, torch.ones(10, 2).double(), delays=delays)
    row = update_row(*outcome_of(batch, batch.mask, "token"))
    found = [row[name] for name in ("delay_mean", "delay_p50", "delay_p95", "delay_max")]
    assert found == pytest.approx([28.5, 20.5, 64 + 0.55 * 17, 81], rel=1e-12)


@pytest.mark.parametrize("name", discover())
def test_at_delay_0_nothing_is_touched_unless_declared(name):
    batch, estimator = random_batch(3, spread=0.0), make(name)
    if estimator.at_delay_0 is None:
        kappa = estimator.coefficients(replace(batch, delays=0 * batch.delays))
        assert touched(batch, kappa, estimator.level) == [(0.0, 0.0)] * 4


# correlation


@pytest.mark.parametrize("seed", range(5))
def test_correlation_is_pearsons(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((2, 3, 4))
    assert measures.correlation(tensor(x), tensor(y)) == pytest.approx(np.corrcoef(x.ravel(), y.ravel())[0, 1])


def test_correlation_by_hand():
    x = tensor([1.0, 2.0, 3.0, 4.0])
    assert measures.correlation(x, 7 - 2 * x) == pytest.approx(-1.0, rel=1e-14)
    assert measures.correlation(x, x.int()) == pytest.approx(1.0, rel=1e-14)
    assert measures.correlation(x, tensor([1.0, -1.0, -1.0, 1.0])) == 0.0
    assert measures.correlation(x, tensor([0.0, 0.0, 0.0, 1.0])) == pytest.approx(sqrt(0.6), rel=1e-14)
    assert measures.correlation(x, tensor([2.0] * 4)) is None
    assert measures.correlation(tensor([1.0] * 4), x) is None
