"""Paired differences over several sets: macro and item-weighted, against the means of one run and the paper's."""

from math import sqrt

import numpy as np
import pytest

from delaysim.analysis.stats import crossed, deduplicated, item_weighted, macro, over_sets
from delaysim.metrics import Problem

SIZES = {"gsm8k": 1319, "math500": 500, "minerva": 272, "olympiad": 675, "amc23": 40, "gaokao2023en": 385}


def tables(seeds, sizes, key=0):
    draw = np.random.default_rng(key)
    return {name: draw.normal(0.01 * i, 0.1, (seeds, size)) for i, (name, size) in enumerate(sizes.items())}


def net(items, size):
    """Paired differences of greedy answers, `items` more right than wrong of `size`."""
    return np.concatenate([np.full(abs(items), np.sign(items)), np.zeros(size - abs(items))])[None]


def test_the_papers_greedy_gains():
    """8B: +.114 macro, +.188 item-weighted; 4B: two problems of AMC23 are -.833 and -.063."""
    nets = {"gsm8k": 6, "math500": -2, "minerva": 0, "olympiad": -1, "amc23": 0, "gaokao2023en": 3}
    large = over_sets({name: net(nets[name], size) for name, size in SIZES.items()})
    middle = over_sets({name: net(-2 * (name == "amc23"), size) for name, size in SIZES.items()})
    found = [round(100 * of.mean, 3) for of in (large.macro, large.item_weighted, middle.macro, middle.item_weighted)]
    assert found == [0.114, 0.188, -0.833, -0.063]
    assert sum(SIZES.values()) == 3191


def test_one_seed_is_the_error_of_one_run():
    """Same mean and error as delaysim.metrics, clusters shared between sets included."""
    found = tables(1, {"a": 30, "b": 12, "c": 7})
    labels = {
        "a": [f"a{i // 2}" for i in range(30)],
        "b": [f"a{i}" for i in range(12)],
        "c": list("cdefghi"),
    }
    sets = [
        [Problem(n, labels[n][i], 1, 0, v, v, 0.0, 0.0, 1.0, 0.0, 0) for i, v in enumerate(found[n][0].tolist())]
        for n in found
    ]
    both = over_sets(found, labels)
    pairs = [(both.macro, macro), (both.item_weighted, item_weighted), (both.deduplicated, deduplicated)]
    for mine, mean in pairs:
        theirs = mean(sets)
        assert (mine.mean, mine.se, mine.clusters) == pytest.approx((theirs.mean, theirs.se, theirs.clusters), rel=1e-9)
    assert not both.macro.seed_variance


def test_one_set_is_the_crossed_interval():
    (d,) = tables(4, {"a": 25}).values()
    both = over_sets({"a": d})
    for found in (both.macro, both.item_weighted, both.deduplicated, both.sets["a"]):
        wanted = crossed(d)
        assert (found.mean, found.se, found.df, found.p) == pytest.approx(
            (wanted.mean, wanted.se, wanted.df, wanted.p), rel=1e-9
        )


def test_separate_sets_add_up():
    """Parts of the mean are the weights' squares times the sets' own; of the seeds' part only the sum is known."""
    found = tables(5, {"a": 40, "b": 15})
    both = over_sets(found)
    for of, weights in ((both.macro, (0.5, 0.5)), (both.item_weighted, (40 / 55, 15 / 55))):
        own = [crossed(d).components for d in found.values()]
        for name in ("by_question", "by_both"):
            wanted = sum(w**2 * getattr(parts, name) for w, parts in zip(weights, own, strict=True))
            assert getattr(of.components, name) == pytest.approx(wanted, rel=1e-9)
        seeds = sum(w * d.mean(1) for w, d in zip(weights, found.values(), strict=True))
        assert of.components.by_seed == pytest.approx(seeds.var(ddof=1) / 5, rel=1e-9)


def test_forty_problems_rule_the_macros_error_and_its_degrees_of_freedom():
    """AMC23 brings most of the macro's variance, so the macro has its degrees of freedom and not 3190."""
    both = over_sets(tables(1, SIZES))
    share = (both.sets["amc23"].se / 6 / both.macro.se) ** 2
    assert share == pytest.approx((1 / 40) / sum(1 / size for size in SIZES.values()), abs=0.15)
    assert both.macro.components.question_df < 39 / share**2 + 20
    assert both.item_weighted.components.question_df > 2000


def test_two_sets_of_the_same_clusters_are_no_more_certain_than_one():
    (d,) = tables(3, {"a": 20}).values()
    labels = [f"x{i}" for i in range(20)]
    both, apart = over_sets({"a": d, "b": d}, {"a": labels, "b": labels}), over_sets({"a": d, "b": d})
    assert both.macro.se == pytest.approx(crossed(d).se, rel=1e-9)
    assert both.macro.components.by_question == pytest.approx(2 * apart.macro.components.by_question, rel=1e-9)


def test_a_cluster_is_counted_once_wherever_it_stands():
    """x stands in both sets, y in one, z twice in the other: three draws, whatever their copies."""
    both = over_sets(
        {"a": [[1.0, 3.0], [1.0, 5.0]], "b": [[2.0, 0.0, 4.0], [2.0, 1.0, 5.0]]},
        {"a": ["x", "y"], "b": ["x", "z", "z"]},
    )
    wanted = crossed([[1.5, 3.0, 2.0], [1.5, 5.0, 3.0]])
    assert both.deduplicated.clusters == 3
    assert (both.deduplicated.mean, both.deduplicated.se) == pytest.approx((wanted.mean, wanted.se), rel=1e-9)
    assert (both.deduplicated.df, both.deduplicated.p) == pytest.approx((wanted.df, wanted.p), rel=1e-9)


def test_swapping_a_and_b_flips_every_sign():
    found = tables(4, {"a": 20, "b": 9})
    plus, minus = over_sets(found), over_sets({name: -d for name, d in found.items()})
    for a, b in ((plus.macro, minus.macro), (plus.item_weighted, minus.item_weighted)):
        assert (a.mean, a.low, a.high, a.p) == pytest.approx((-b.mean, -b.high, -b.low, b.p))


def test_sets_of_zeros_have_p_one():
    both = over_sets({"a": np.zeros((3, 5)), "b": np.zeros((3, 4))})
    assert (both.macro.p, both.item_weighted.se) == (1, 0)


def test_a_known_error():
    """Seeds alike, two sets with sd .1 over 25 and .2 over 100 problems: .02 each, .0141 as macro."""
    ends = {"a": np.tile([0.1, -0.1], 13)[:25], "b": np.tile([0.2, -0.2], 50)}
    both = over_sets({name: np.tile(values - values.mean(), (4, 1)) for name, values in ends.items()})
    own = [values.std(ddof=1) / sqrt(len(values)) for values in ends.values()]
    assert both.macro.se == pytest.approx(sqrt(own[0] ** 2 + own[1] ** 2) / 2, rel=1e-9)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({}, "different seeds"),
        ({"a": np.ones((2, 3)), "b": np.ones((3, 3))}, "different seeds"),
        ({"a": np.ones((2, 3)), "b": np.ones((2, 1))}, "set b has one cluster"),
    ],
)
def test_sets_that_cannot_be_averaged_are_refused(bad, said):
    with pytest.raises(ValueError, match=said):
        over_sets(bad)
