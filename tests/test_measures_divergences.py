"""Divergences by exact sums over small languages, extremes, and a delay that depends on length (Remark 6)."""

from dataclasses import replace
from itertools import product
from math import exp, log

import numpy as np
import pytest
import torch
from estimators.batches import batch_of, pinned

from delaysim import measures
from delaysim.estimators import discover, make
from delaysim.estimators.base import LOG_KAPPA_BOUND

STOP, LONGEST = 0, 3


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def language(seed):
    """Next-token chances of a language of 3 symbols after every prefix; symbol 0 ends a text."""
    rng = np.random.default_rng(seed)
    prefixes = [p for n in range(LONGEST) for p in product((1, 2), repeat=n)]
    return {prefix: rng.dirichlet([2.0, 1.0, 1.0]) for prefix in prefixes}


def texts():
    """Every text: closed by the stop symbol, or cut at the longest."""
    closed = [(*p, STOP) for n in range(LONGEST) for p in product((1, 2), repeat=n)]
    return closed + list(product((1, 2), repeat=LONGEST))


def token_logs(chances, text):
    return [log(chances[text[:t]][symbol]) for t, symbol in enumerate(text)]


def table(chances):
    """[1, texts, LONGEST] log-probabilities, 0 on padding."""
    rows = [token_logs(chances, text) for text in texts()]
    return tensor([[[*row, *[0.0] * (LONGEST - len(row))] for row in rows]])


def everything(mu, pi):
    """Every text of the language as one group, and its probability under mu and pi."""
    mask = tensor([[[float(t < len(text)) for t in range(LONGEST)] for text in texts()]])
    behaviour, logp = table(mu), table(pi)
    batch = batch_of(logp, behaviour, mask, torch.ones(mask.shape[:2], dtype=torch.float64))
    return batch, *(tensor([exp(sum(token_logs(p, text))) for text in texts()]) for p in (mu, pi))


@pytest.mark.parametrize("seed", range(10))
def test_divergences_are_unbiased_under_the_behaviour(seed):
    """k1 and k3 estimate KL(behaviour || current), kl_pi_mu the other direction: exact sums over all texts."""
    batch, mu, pi = everything(language(seed), language(seed + 100))
    assert float(mu.sum()) == pytest.approx(1.0, rel=1e-12)
    assert float(pi.sum()) == pytest.approx(1.0, rel=1e-12)
    forwards, backwards = (float((p * (p / q).log()).sum()) for p, q in ((mu, pi), (pi, mu)))
    assert abs(forwards - backwards) > 1e-3
    for measure, wanted in (("kl_mu_pi_k1", forwards), ("kl_mu_pi_k3", forwards), ("kl_pi_mu", backwards)):
        assert float(mu @ getattr(measures, measure)(batch)[0]) == pytest.approx(wanted, rel=1e-10), measure


@pytest.mark.parametrize("seed", range(5))
def test_two_of_the_three_are_never_negative_and_all_vanish_where_the_weights_agree(seed):
    batch = everything(language(seed), language(seed + 100))[0]
    assert float(measures.kl_mu_pi_k3(batch).min()) >= 0
    assert float(measures.kl_pi_mu(batch).min()) >= 0
    assert float(measures.kl_mu_pi_k1(batch).min()) < 0
    same = everything(language(seed), language(seed))[0]
    for measure in (measures.kl_mu_pi_k1, measures.kl_mu_pi_k3, measures.kl_pi_mu):
        assert not measure(same).any()


@pytest.mark.parametrize(
    ("measure", "value"), [("kl_pi_mu", 0.900054), ("kl_mu_pi_k1", -0.1625), ("kl_mu_pi_k3", 0.609342)]
)
def test_pinned_divergences(measure, value):
    assert float(getattr(measures, measure)(pinned()).mean()) == pytest.approx(value, abs=5e-7)


# extremes


def extreme(*log_ratios):
    delta = tensor(log_ratios).view(1, -1, 1)
    advantages = tensor([[1.0, -1.0] * (len(log_ratios) // 2)])
    logp = delta.clamp(max=0) - 1
    return batch_of(logp, logp - delta, torch.ones_like(delta), advantages)


CASES = [(1e4, -1e4, 0.0, 1.0), (1e4, 1e4, 1e4, 9999.0), (-1e4, -1e4, -1e4, -1e4), (700.0, -700.0, 800.0, 1e4)]


@pytest.mark.parametrize("case", CASES)
def test_measures_of_ratios_beyond_any_number_are_finite(case):
    batch = extreme(*case)
    for measure in (measures.kl_mu_pi_k1, measures.kl_mu_pi_k3, measures.kl_pi_mu):
        assert measure(batch).isfinite().all(), measure
    assert 0.25 - 1e-12 <= float(measures.ess(batch.log_rho.flatten())) <= 1 + 1e-12
    assert 0.25 - 1e-12 <= measures.ess_token(batch.log_rho, batch.lengths) <= 1 + 1e-12
    assert 0.25 - 1e-12 <= float(measures.top_share(batch.log_rho)[0]) <= 1 + 1e-12
    tail = measures.hill(tensor(case * 4))
    assert tail is None or 0 < tail < 1e12
    for name in discover():
        mean = measures.kept(batch, make(name).coefficients(batch))
        for values in (mean, *(m(batch, mean) for m in (measures.weight, measures.removed, measures.second_moment))):
            assert values.isfinite().all(), name


def test_divergences_saturate_where_their_ratio_does():
    """At log-ratio 1e4: rho is e^30, its k3 e^30 - 1 - 1e4; at -1e4 it is 0, k3 9999 and the other direction 1."""
    batch, top = extreme(1e4, -1e4), exp(LOG_KAPPA_BOUND)
    assert measures.kl_mu_pi_k1(batch)[0].tolist() == [-1e4, 1e4]
    assert measures.kl_mu_pi_k3(batch)[0].tolist() == pytest.approx([top - 1 - 1e4, 9999.0], rel=1e-12)
    assert float(measures.kl_pi_mu(batch)[0, 1]) == 1.0
    assert float(measures.kl_pi_mu(batch)[0, 0]) > 100 * top


def test_agreement_holds_where_ratios_differ_by_more_than_any_number():
    for case in ((1e4, -1e4, 0.0, 1.0), (-3.0, -1e4, -900.0, -5.0), (2e3, 2e3, -1e4, 1999.0)):
        batch = extreme(*case)
        assert float(measures.agreement(batch, make("gmc").coefficients(batch))) == pytest.approx(1.0, rel=1e-12)


# a delay that depends on length


def groups_of(size, mu, pi):
    """Every group of `size` texts with its probability under mu; delayed by 9 where one of them is LONGEST, else 1."""
    one, chance, _ = everything(mu, pi)
    which = torch.tensor(list(product(range(len(texts())), repeat=size)))
    parts = {name: getattr(one, name)[0][which] for name in ("logp", "behaviour", "mask", "advantages", "rewards")}
    longest = parts["mask"].sum(-1).amax(1) == LONGEST
    batch = replace(one, **parts, delays=1 + 8 * longest.long(), versions=10 - 1 - 8 * longest.long())
    return batch, chance[which].prod(1)


def long_chance(chances):
    return sum(exp(sum(token_logs(chances, text))) for text in texts() if len(text) == LONGEST)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("seed", [0, 2, 3, 4])
def test_given_its_delay_a_groups_mean_ratio_is_not_1(seed, size):
    """Remark 6 of 2610.01896. Over all groups it is 1; given that one text is long it is a ratio of two chances.

    p, q: the chance of a long text under behaviour and current. E[rho 1{long}] = 1 - (1 - q)(1 - p)^(G-1).
    """
    mu, pi = language(seed), language(seed + 50)
    batch, chance = groups_of(size, mu, pi)
    mean, long = batch.rho.mean(1), batch.delays == 9
    assert float(chance.sum()) == pytest.approx(1.0, rel=1e-12)
    assert float(chance @ mean) == pytest.approx(1.0, rel=1e-12)
    given_long = float((chance * mean)[long].sum() / chance[long].sum())
    given_short = float((chance * mean)[~long].sum() / chance[~long].sum())
    p, q = long_chance(mu), long_chance(pi)
    assert given_long == pytest.approx((1 - (1 - q) * (1 - p) ** (size - 1)) / (1 - (1 - p) ** size), rel=1e-10)
    assert abs(given_long - 1) > 0.01
    assert (given_long - 1) * (given_short - 1) < 0
    assert (given_long > 1) == (q > p)


def test_given_a_delay_that_is_drawn_apart_from_the_texts_it_is_1():
    """The control: every group twice, delayed by 1 with chance .3 and by 9 with chance .7."""
    batch, chance = groups_of(2, language(0), language(50))
    mean, n = batch.rho.mean(1).repeat(2), len(chance)
    chance, delays = torch.cat([0.3 * chance, 0.7 * chance]), torch.tensor([1] * n + [9] * n)
    for delay in (1, 9):
        given = delays == delay
        assert float((chance * mean)[given].sum() / chance[given].sum()) == pytest.approx(1.0, rel=1e-12)
