"""Comparisons of runs: pairing, what is held, verdicts, and the axes they are read on."""

import math

import numpy as np
import pytest
from fabricated import made, score
from hypothesis import given
from hypothesis import strategies as st

from delaysim.analysis.compare import ALIKE, ONE_SEED, OPEN, SAME, Rule, compare, over_grid
from delaysim.analysis.endpoints import endpoint
from delaysim.analysis.grid import arrange, select, varying
from delaysim.analysis.stats import auc, crossed, holm
from delaysim.errors import UserError

rng = np.random.default_rng(0)


def runs(means, seeds=range(5), noise=0.02, problems=40, **settings):
    """One run per level and seed: the level's mean, a seed's own shift, and noise per problem."""
    shifts = {seed: np.random.default_rng(seed).normal(0, noise, problems) for seed in seeds}
    return [
        made(np.clip(mean + shifts[seed] * (1 + i), 0, 1), seed, estimator=level, **settings)
        for i, (level, mean) in enumerate(means.items())
        for seed in seeds
    ]


def test_a_difference_is_that_of_the_crossed_design_on_shared_seeds():
    a, b = rng.uniform(0, 1, (4, 30)), rng.uniform(0, 1, (4, 30))
    outcomes = [made(row, s, estimator="a") for s, row in enumerate(a)]
    outcomes += [made(row, s, estimator="b") for s, row in enumerate(b[1:], 1)]
    (contrast,) = compare(arrange(outcomes, "estimator", []), Rule())
    expected = crossed(score(a[1:]) - score(b[1:]))
    assert contrast.seeds == (1, 2, 3)
    got = contrast.difference
    assert np.allclose([got.mean, got.low, got.high, got.p], [expected.mean, expected.low, expected.high, expected.p])
    assert math.isclose(contrast.mean_a, score(a[1:]).mean())


def test_seeds_as_such_are_beside_the_mean():
    """Four seeds of each: the middle halves have .5 and .7, and one pair of 16 is a tie."""
    finals = {"a": [0.4, 0.5, 0.5, 0.6], "b": [0.6, 0.7, 0.7, 0.8]}
    outcomes = [made(np.full(4, f), s, estimator=e) for e, of in finals.items() for s, f in enumerate(of)]
    (contrast,) = compare(arrange(outcomes, "estimator", []), Rule())
    assert (contrast.iqm_a, contrast.iqm_b) == pytest.approx((score(0.5), score(0.7)))
    assert contrast.improvement == pytest.approx(1 / 32)


def test_the_order_of_runs_says_nothing():
    outcomes = [*runs({"a": 0.5, "b": 0.6, "c": 0.7}), *runs({"a": 0.5, "b": 0.4}, D=64)]
    there = compare(arrange(outcomes, "estimator", ["D"]), Rule())
    assert there == compare(arrange(outcomes[::-1], "estimator", ["D"]), Rule())
    assert [(c.at["D"], c.a, c.b) for c in there] == [
        (0, "a", "b"), (0, "a", "c"), (0, "b", "c"), (64, "a", "b"),
    ]  # fmt: skip


@given(st.floats(-0.2, 0.2), st.integers(2, 6))
def test_verdicts_follow_p_and_the_sign(gap, seeds):
    found = compare(arrange(runs({"a": 0.5, "b": 0.5 + gap}, range(seeds)), "estimator", []), Rule(margin=0.01))
    (contrast,) = found
    better = "b better" if gap > 0 else "a better"
    assert contrast.verdict == (better if contrast.p_holm < 0.05 else contrast.verdict)
    assert (contrast.verdict in (ALIKE, OPEN)) == (contrast.p_holm >= 0.05)
    if contrast.verdict == ALIKE:
        assert max(abs(contrast.difference.low), abs(contrast.difference.high)) <= 0.01 + 1e-12


def test_one_seed_gives_no_verdict_however_large_the_difference():
    (contrast,) = compare(arrange(runs({"a": 0.1, "b": 0.9}, [0]), "estimator", []), Rule(margin=0.01))
    assert contrast.verdict == ONE_SEED
    assert math.isnan(contrast.p_holm)


def test_p_is_corrected_over_the_whole_table():
    outcomes = [run for d in (0, 16, 32) for run in runs({"a": 0.5, "b": 0.51, "c": 0.53}, noise=0.03, D=d)]
    found = compare(arrange(outcomes, "estimator", ["D"]), Rule())
    assert len(found) == 9
    assert np.allclose([c.p_holm for c in found], holm([c.difference.p for c in found]))


@given(st.integers(0, 400), st.floats(0.005, 0.08))
def test_what_is_not_settled_takes_at_least_one_more_seed(seed, gap):
    """Also where the difference alone would be separable and the correction over the table undoes it."""
    rng = np.random.default_rng(seed)
    means = {name: 0.5 + gap * i for i, name in enumerate("abcd")}
    cells = arrange(runs(means, range(3), noise=float(rng.uniform(0.01, 0.08))), "estimator", [])
    for contrast in compare(cells, Rule()):
        assert contrast.verdict != OPEN or contrast.more_seeds >= 1


def test_runs_that_are_the_same_by_design_are_no_test_of_the_table():
    """All losses are one run at delay 0; the p of the others is corrected over the others."""
    same = [made(np.full(40, 0.7), s, estimator=e, D=0) for s in range(5) for e in "ab"]
    other = runs({"a": 0.5, "b": 0.52}, noise=0.03, D=16)
    alike, tested = compare(arrange([*same, *other], "estimator", ["D"]), Rule(margin=0.01))
    assert alike.verdict == SAME
    assert math.isnan(alike.p_holm)
    assert tested.p_holm == tested.difference.p


def test_against_one_compares_with_that_one_only():
    found = compare(arrange(runs({"a": 0.5, "b": 0.6, "c": 0.7}), "estimator", []), Rule(), "b")
    assert [(c.a, c.b) for c in found] == [("a", "b"), ("c", "b")]


def test_collapsed_runs_stay_in_the_mean_and_are_counted():
    outcomes = runs({"a": 0.5, "b": 0.5})
    outcomes[0] = made(np.zeros(40), 0, estimator="a", collapsed=True)
    (contrast,) = compare(arrange(outcomes, "estimator", []), Rule())
    assert (contrast.collapsed_a, contrast.collapsed_b) == (1, 0)
    assert math.isclose(contrast.mean_a, np.mean([run.final for run in outcomes[:5]]))


def test_the_primary_endpoint_is_the_difference_of_areas():
    levels = {(level, d, s): rng.uniform(0, 1, 20) for level in "ab" for d in (0, 16, 64) for s in range(3)}
    outcomes = [made(final, s, estimator=level, D=d) for (level, d, s), final in levels.items()]
    (contrast,) = over_grid(arrange(outcomes, "estimator", ["D"]), "D", Rule())
    area = {
        level: auc(np.stack([[score(levels[level, d, s]) for s in range(3)] for d in (0, 16, 64)], -1), [0, 16, 64])
        for level in "ab"
    }
    assert math.isclose(contrast.difference.mean, (area["a"] - area["b"]).mean())
    assert math.isclose(contrast.difference.p, crossed(area["a"] - area["b"]).p)


def test_an_area_needs_every_delay():
    outcomes = [*runs({"a": 0.5, "b": 0.6, "c": 0.7}), *runs({"a": 0.5, "b": 0.6}, D=64)]
    found = over_grid(arrange(outcomes, "estimator", ["D"]), "D", Rule())
    assert [(c.a, c.b) for c in found] == [("a", "b")]


def test_at_equal_tokens_the_hungrier_run_is_read_where_the_other_ended():
    """Straight lines: with twice the tokens per update the same accuracy lies at half the way."""
    thrifty = [made(np.full(5, 0.8), s, tokens=100, estimator="a") for s in range(2)]
    hungry = [made(np.full(5, 0.8), s, tokens=200, estimator="b") for s in range(2)]
    (contrast,) = compare(arrange([*thrifty, *hungry], "estimator", []), Rule())
    assert math.isclose(contrast.difference.mean, 0, abs_tol=1e-12)
    assert math.isclose(contrast.matched["tokens"].mean, 0.6 * (1 - 0.5) * 2 / 3)
    assert math.isclose(contrast.matched["trajectories"].mean, 0, abs_tol=1e-12)


def test_times_of_different_clocks_do_not_compare():
    outcomes = [made(np.full(5, 0.5), s, estimator=e, C_gen=c) for s in range(2) for e, c in (("a", 85.0), ("b", 20.0))]
    (contrast,) = compare(arrange(outcomes, "estimator", []), Rule())
    assert contrast.matched["sim_time"] is None
    assert contrast.matched["tokens"] is not None


@pytest.mark.parametrize("key", ["lr", "G"])
def test_what_varies_beside_is_asked_for(key):
    outcomes = [*runs({"a": 0.5, "b": 0.6}), *runs({"a": 0.5, "b": 0.6}, **{key: 3})]
    with pytest.raises(UserError, match=f"{key} also varies .*: add --at {key}, or choose with --where {key}=VALUE"):
        arrange(outcomes, "estimator", [])
    assert len(arrange(outcomes, "estimator", [key])) == 2


def test_a_setting_fixed_within_each_level_belongs_to_it():
    outcomes = [made(np.full(5, 0.5), s, estimator=e, eps=eps) for s in range(2) for e, eps in (("a", 0.2), ("b", 0.3))]
    assert len(arrange(outcomes, "estimator", [])) == 1
    assert varying(outcomes) == ["estimator", "eps"]


def test_a_setting_that_follows_the_held_one_needs_no_word():
    """B*G held: B follows G."""
    outcomes = [made(np.full(5, 0.5), s, estimator=e, G=g, B=64 // g) for s in (0, 1) for e in "ab" for g in (4, 8)]
    assert [stratum.at for stratum in arrange(outcomes, "estimator", ["G"])] == [{"G": 4}, {"G": 8}]


def test_runs_on_different_problems_are_not_paired():
    with pytest.raises(UserError, match="different problems"):
        arrange([made(np.zeros(5), 0), made(np.zeros(6), 1)], "estimator", [])


def test_where_takes_numbers_however_they_are_written():
    outcomes = [made(np.zeros(5), 0, lr=lr) for lr in (1e-4, 3e-4, 1e-3)]
    assert [run.settings["lr"] for run in select(outcomes, {"lr": ["0.0001", "1e-3"]})] == [1e-4, 1e-3]
    with pytest.raises(UserError, match=r"no run has lr=2; the runs have lr=0\.0001, 0\.0003, 0\.001"):
        select(outcomes, {"lr": ["2"]})
    with pytest.raises(UserError, match=r"no run has a setting .leanring.; those that differ here: lr"):
        select(outcomes, {"leanring": ["2"]})


def test_the_area_under_straight_curves_is_half_way_up():
    outcomes = [made(np.full(4, f), s, estimator=e) for s in (0, 1) for e, f in (("a", 0.8), ("b", 0.6))]
    (contrast,) = compare(arrange(outcomes, "estimator", []), Rule(endpoint=endpoint("area")))
    assert (contrast.mean_a, contrast.mean_b) == pytest.approx((0.5, 0.4))
    assert not contrast.matched


def test_updates_until_a_level_lie_on_the_line_and_end_with_the_run():
    """From .2 to .8 in 60 updates: .5 after 30. The other ends at .4 and counts with all its 60."""
    outcomes = [made(np.full(4, f), s, estimator=e) for s in (0, 1) for e, f in (("a", 0.8), ("b", 0.4))]
    rule = Rule(endpoint=endpoint("until=0.5"), less_is_better=True)
    (contrast,) = compare(arrange(outcomes, "estimator", []), rule)
    assert (contrast.mean_a, contrast.mean_b) == pytest.approx((30, 60))
    assert contrast.verdict == "a better"


@pytest.mark.parametrize("text", ["best", "until", "until=soon", "final=3"])
def test_an_unknown_endpoint_is_refused(text):
    with pytest.raises(UserError, match="give final, area, or until=LEVEL"):
        endpoint(text)
