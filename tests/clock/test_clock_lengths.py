"""Drawn lengths: keyed by group and response, and lognormal where they say so. Tolerances are 4.5 standard errors."""

from math import exp, log, sqrt

import numpy as np
import pytest
from clock.length_laws import HEAVY, expected_tail
from scipy.stats import norm

from delaysim.clock.lengths import BLOCK, Empirical, KeyedLengths, Lognormal

GROUPS, SIZE, Z = 40 * BLOCK, 8, 4.5
UNCAPPED = Lognormal(600, 0.7, 0.5, 10**9)


@pytest.fixture(scope="module")
def uncapped():
    return KeyedLengths(UNCAPPED, SIZE, seed=7).table(GROUPS).astype(float)


def length_correlation(law):
    """Correlation of two lengths of a group, not of their logs."""
    return (exp(law.sigma**2 * law.prompt_share) - 1) / (exp(law.sigma**2) - 1)


def test_mean(uncapped):
    spread = 600 * sqrt(exp(UNCAPPED.sigma**2) - 1)
    error = spread * sqrt((1 + (SIZE - 1) * length_correlation(UNCAPPED)) / (GROUPS * SIZE))
    assert error < 2
    assert abs(uncapped.mean() - 600) < Z * error


def test_standard_deviation(uncapped):
    """The variance of a sample variance, by the kurtosis of a lognormal; as if only the groups were independent."""
    w = exp(UNCAPPED.sigma**2)
    excess, spread = w**4 + 2 * w**3 + 3 * w**2 - 6, 600 * sqrt(w - 1)
    error = spread * sqrt((excess + 2) / GROUPS) / 2
    assert error < 0.02 * spread
    assert abs(uncapped.std() - spread) < Z * error


def test_standard_deviation_of_the_log(uncapped):
    """var(s^2) = 2 sigma^4 (1 + (G-1) share^2) / (n G) for normal logs that share part of their variance."""
    error = 0.7 * sqrt((1 + (SIZE - 1) * 0.25) / (2 * GROUPS * SIZE))
    assert abs(np.log(uncapped).std() - 0.7) < Z * error


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9])
def test_correlation_within_a_group(share):
    table = KeyedLengths(Lognormal(600, 0.7, share, 10**9), 2, seed=8).table(GROUPS)
    found = np.corrcoef(np.log(table).T)[0, 1]
    assert abs(found - share) < Z * (1 - share**2) / sqrt(GROUPS)


def test_groups_are_independent(uncapped):
    means = np.log(uncapped).mean(axis=1)
    lags = [np.corrcoef(means[:-lag], means[lag:])[0, 1] for lag in (1, 2, BLOCK)]
    assert max(map(abs, lags)) < Z / sqrt(GROUPS - BLOCK)


def test_a_shared_length_is_the_same_in_the_whole_group():
    table = KeyedLengths(Lognormal(600, 0.7, 1.0, 3072), SIZE, seed=9).table(500)
    assert (table == table[:, :1]).all()
    assert len(set(table[:, 0].tolist())) > 300


def test_the_cap_cuts_and_one_token_is_the_least():
    law = Lognormal(3, 1.5, 0.0, 20)
    table = KeyedLengths(law, 1, seed=10).table(GROUPS)
    for least, share in ((20, norm.sf(log(19.5), log(3) - 1.125, 1.5)), (2, norm.sf(log(1.5), log(3) - 1.125, 1.5))):
        assert abs((table >= least).mean() - share) < Z * sqrt(share * (1 - share) / GROUPS)
    assert (table.min(), table.max()) == (1, 20)


def test_tail_multiplier_of_the_default_law():
    """clock.md's 1.854, a quadrature, and a sample agree."""
    table = KeyedLengths(HEAVY, 8, seed=12).table(20_000)
    sampled = table.max(1).mean() / table.mean()
    assert expected_tail(HEAVY, 8) == pytest.approx(1.854, rel=0.002)
    assert sampled == pytest.approx(1.854, rel=0.02)


@pytest.mark.parametrize("size", [1, 4, 7])
def test_a_smaller_group_is_a_prefix(size):
    whole = KeyedLengths(HEAVY, 8, seed=13).table(2 * BLOCK + 5)
    assert (KeyedLengths(HEAVY, size, seed=13).table(2 * BLOCK + 5) == whole[:, :size]).all()


def test_the_order_of_asking_does_not_matter():
    asked, pieces = KeyedLengths(HEAVY, 8, seed=14), {}
    for start in (5000, 0, BLOCK - 1, 2 * BLOCK, 17, 0):
        pieces[start] = asked.longest(range(start, start + 3))
    expected = KeyedLengths(HEAVY, 8, seed=14).table(5003).max(1)
    assert pieces == {start: expected[start : start + 3].tolist() for start in pieces}


def test_a_number_of_groups_is_a_prefix_of_a_larger_one():
    lengths = KeyedLengths(HEAVY, 4, seed=15)
    few, many = lengths.table(10), lengths.table(3 * BLOCK)
    assert few.shape == (10, 4)
    assert (many[:10] == few).all()
    assert KeyedLengths(HEAVY, 4, seed=15).table(0).shape == (0, 4)


def test_seed_name_and_block_each_change_the_draws():
    tables = [KeyedLengths(HEAVY, 8, seed, name).table(BLOCK) for seed, name in ((1, "lengths"), (2, "lengths"))]
    tables += [KeyedLengths(HEAVY, 8, 1, "pilot").table(BLOCK), KeyedLengths(HEAVY, 8, 1).table(2 * BLOCK)[BLOCK:]]
    logs = [np.log(table).ravel() for table in tables]
    correlations = np.corrcoef(logs)[np.triu_indices(4, 1)]
    # Logs share 1/2 within a group, so a pair of streams has the precision of its BLOCK groups at worst.
    assert np.abs(correlations).max() < Z / sqrt(BLOCK)


def test_recorded_lengths_are_drawn_with_their_frequencies():
    recorded = np.array([5, 5, 5, 40, 900])
    table = KeyedLengths(Empirical(recorded), 4, seed=16).table(GROUPS)
    for value, share in ((5, 0.6), (40, 0.2), (900, 0.2)):
        assert abs((table == value).mean() - share) < Z * sqrt(share * (1 - share) / (4 * GROUPS))
    assert set(np.unique(table).tolist()) == {5, 40, 900}


@pytest.mark.parametrize("stat", ["max", "mean", "sum"])
def test_sizes_are_the_same_as_a_list_and_as_an_array(stat):
    lengths, again = (KeyedLengths(HEAVY, 3, seed=17, stat=stat) for _ in range(2))
    table = again.table(3 * BLOCK)
    for groups in (range(BLOCK - 2, BLOCK + 3), range(5), range(2 * BLOCK, 3 * BLOCK)):
        assert lengths.sizes(groups).tolist() == lengths.longest(groups)
        assert lengths.longest(groups) == getattr(table[groups.start : groups.stop], stat)(axis=1).tolist()
