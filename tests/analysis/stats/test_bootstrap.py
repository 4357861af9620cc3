"""The crossed bootstrap: what it resamples, its agreement with closed forms and with scipy, and its repeatability."""

import numpy as np
import pytest
from scipy.stats import bootstrap as scipys

from delaysim.analysis.stats import (
    auc,
    bootstrap,
    bootstrap_seeds,
    crossed,
    delay_at,
    iqm,
    resample,
    resampled_means,
)


def rng(key=7):
    return np.random.default_rng(key)


def table(seeds=10, problems=80, seed_sd=0.05, question_sd=0.1, rest=0.0, key=1):
    draw = rng(key)
    of = draw.normal(0, seed_sd, (seeds, 1)) + draw.normal(0, question_sd, problems)
    return 0.02 + of + draw.normal(0, rest, (seeds, problems))


def test_resamples_are_means_over_drawn_seeds_and_problems():
    """Two seeds, two problems, distinct powers of ten: only means of whole rows and columns can appear."""
    d = np.array([[1.0, 10.0], [100.0, 1000.0]])
    possible = {d[np.ix_(s, q)].mean() for s in np.ndindex(2, 2) for q in np.ndindex(2, 2)}
    found = set(resampled_means(d, rng(), 2000).tolist())
    assert {round(v, 6) for v in found} == {round(v, 6) for v in possible}


def test_a_cluster_is_drawn_whole():
    """One seed; problems 0 and 1 in one cluster: means weigh 2 to 1, as in a ratio of sums."""
    found = set(np.round(resampled_means(np.array([[0.0, 2.0, 9.0]]), rng(), 500, ["a", "a", "b"]), 6).tolist())
    assert found == {1.0, 9.0, round(11 / 3, 6)}


def test_the_variance_is_what_resampling_gives_in_closed_form():
    """Without a seed x problem part: (S-1)/S of the seeds' and (Q-1)/Q of the problems' variance."""
    d = table()
    parts, means = crossed(d).components, resampled_means(d, rng(), 20_000)
    wanted = parts.by_seed * 9 / 10 + parts.by_question * 79 / 80
    assert means.var() == pytest.approx(wanted, rel=0.04)
    assert means.mean() == pytest.approx(d.mean(), abs=4 * np.sqrt(wanted / 20_000))


def test_the_part_of_single_cells_counts_three_times():
    """Owen (2007): with nothing but seed x problem noise the variance of resampled means is three times too large."""
    d = table(40, 60, 0, 0, 1.0)
    assert resampled_means(d, rng(), 20_000).var() == pytest.approx(3 / 2400, rel=0.12)


def test_percentiles_are_near_the_t_interval_with_many_seeds():
    d = table(seeds=40)
    found, wanted = bootstrap(d, None, rng()), crossed(d)
    assert (found.value, found.low, found.high) == pytest.approx((wanted.mean, wanted.low, wanted.high), abs=0.003)
    assert not found.too_few_seeds


def test_below_five_seeds_it_is_too_narrow_and_says_so():
    d = table(seeds=3, question_sd=0.0)
    found = bootstrap(d, None, rng())
    assert found.too_few_seeds
    assert found.high - found.low < 0.5 * 2 * crossed(d).half_width


@pytest.mark.parametrize(("method", "theirs"), [("percentile", "percentile"), ("bca", "BCa")])
def test_over_problems_alone_it_is_scipys(method, theirs):
    """Skewed scores of one seed: both methods against scipy's, whose draws differ."""
    x = rng(3).exponential(1.0, 60)
    found = bootstrap(x[None], None, rng(), draws=40_000, method=method)
    wanted = scipys((x,), np.mean, n_resamples=40_000, method=theirs, rng=rng(9)).confidence_interval
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high), abs=0.015)


def test_bca_corrects_bias_as_scipys():
    """A variance from resampled means of x and x^2 is too small on average: z0 is .18 and moves both ends up."""
    x = rng(3).exponential(1.0, 25)
    moments = np.stack([x, x**2])[:, None, :]
    found = bootstrap(moments, lambda m: m[:, 1] - m[:, 0] ** 2, rng(), draws=20_000, method="bca")
    wanted = scipys((x,), np.var, n_resamples=20_000, method="BCa", rng=rng(9)).confidence_interval
    assert found.value == pytest.approx(x.var(), rel=1e-9)
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high), rel=0.05)


def test_bca_moves_towards_the_long_tail():
    x = rng(3).exponential(1.0, (8, 40))
    plain, better = (bootstrap(x, None, rng(), method=method) for method in ("percentile", "bca"))
    assert better.low > plain.low
    assert better.high > plain.high


def test_a_curve_shares_its_resamples():
    """Two estimators alike up to a constant: the difference of their areas has no error, each area has."""
    delays = np.array([0.0, 32, 64])
    curve = 0.6 - 0.002 * delays[:, None, None] + table()
    both = np.stack([curve, curve - 0.1])
    gap = bootstrap(both, lambda m: auc(m[:, 0], delays) - auc(m[:, 1], delays), rng(), draws=500)
    assert (gap.value, gap.low, gap.high) == pytest.approx((0.1, 0.1, 0.1), abs=1e-12)
    alone = bootstrap(curve, lambda m: auc(m, delays), rng(), draws=500)
    assert alone.high - alone.low > 0.02


def test_a_delay_that_the_grid_does_not_reach_is_infinite_at_its_end():
    """D_.9 lies near 64 of 64: some resamples never fall below; the upper end is open, the lower a number."""
    delays = np.array([0.0, 32, 64])
    spread = table(8, 60) - table(8, 60).mean()
    curve = np.array([0.6, 0.57, 0.5395])[:, None, None] + spread * np.array([1, 0, 1.0])[:, None, None]
    found = bootstrap(curve, lambda m: delay_at(m, delays, 0.9), rng(), draws=2000)
    assert 0 < found.low < found.value < found.high == np.inf


def test_draws_are_repeatable_and_come_in_pieces_alike(monkeypatch):
    d = table()
    whole = resampled_means(d, rng(), 300)
    assert np.array_equal(whole, resampled_means(d, rng(), 300))
    monkeypatch.setattr(resample, "AT_ONCE", 900)
    pieces = resampled_means(d, rng(), 300)
    assert pieces.shape == whole.shape
    assert pieces.var() == pytest.approx(whole.var(), rel=0.5)


def test_no_spread_is_a_point():
    for method in ("percentile", "bca"):
        found = bootstrap(np.full((5, 9), 0.25), None, rng(), draws=200, method=method)
        assert (found.value, found.low, found.high) == (0.25, 0.25, 0.25)


def test_seeds_bring_all_their_sets_along():
    """Two sets that differ by a constant within each seed: their difference has no error however seeds are drawn."""
    x = rng(2).normal(0.5, 0.1, 9)[:, None] + [0.0, 0.3]
    gap = bootstrap_seeds(x, lambda draws: draws[..., 1].mean(-1) - draws[..., 0].mean(-1), rng(), draws=500)
    assert (gap.low, gap.high) == pytest.approx((0.3, 0.3), abs=1e-12)
    middle = bootstrap_seeds(x, iqm, rng(), draws=500)
    assert middle.value == pytest.approx(float(iqm(x)), rel=1e-12)
    assert middle.low < middle.value < middle.high


@pytest.mark.parametrize("bad", [[0.1, 0.2], [[np.nan, 0.1]], [[]]])
def test_what_is_no_table_cannot_be_resampled(bad):
    with pytest.raises(ValueError, match="seeds x problems"):
        resampled_means(bad, rng())
