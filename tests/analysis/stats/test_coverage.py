"""How often 95 % intervals hold the truth, by simulation (evaluation study, sec. 3: gap 2.5 points, 500 problems)."""

import numpy as np
import pytest

from delaysim.analysis.stats import crossed, over_seeds
from delaysim.analysis.stats.estimates import quantile

GAP = 0.025
QUESTION, SAMPLING = 0.134, 0.19
"""sd of a paired difference over problems, and of what sixteen samples leave open."""


def draws(rng, seeds, seed_sd, problems=500, clusters=None):
    """One experiment's (seeds, problems) differences; `seed_sd` per method, so sqrt 2 of it in the difference."""
    d = GAP + rng.normal(0, seed_sd * np.sqrt(2), (seeds, 1)) + rng.normal(0, QUESTION, problems)
    if clusters is not None:
        d = d + rng.normal(0, QUESTION, problems)[clusters]
    return d + rng.normal(0, SAMPLING, (seeds, problems))


def coverage(interval, sims, seeds, seed_sd, clusters=None, problems=500):
    rng = np.random.default_rng([seeds, round(1e4 * seed_sd), sims])
    held = [interval(draws(rng, seeds, seed_sd, problems, clusters)) for _ in range(sims)]
    return np.mean([found.low <= GAP <= found.high for found in held])


def over_questions(d):
    """The interval of a paper that takes the seeds it has as all there are."""
    return crossed(d.mean(0)[None])


def test_the_crossed_interval_holds_at_five_seeds():
    assert 0.91 <= coverage(crossed, 300, 5, 0.014) <= 0.985


def test_problems_alone_hold_too_rarely():
    """One seed, sd 1.4 points over seeds: what is printed as 95 % holds about 64 % of the time; sd 3.4: a third."""
    assert coverage(over_questions, 400, 1, 0.014) == pytest.approx(0.64, abs=0.09)
    assert coverage(over_questions, 400, 1, 0.034) == pytest.approx(0.32, abs=0.09)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize("seed_sd", [0.0, 0.014, 0.034])
def test_the_crossed_interval_holds(seeds, seed_sd):
    assert 0.91 <= coverage(crossed, 600, seeds, seed_sd) <= 0.985


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_the_crossed_interval_holds_with_clusters_of_one_to_seven(seeds):
    clusters = np.repeat(np.arange(60), 1 + np.arange(60) % 7)
    found = coverage(lambda d: crossed(d, clusters), 600, seeds, 0.014, clusters, len(clusters))
    assert 0.91 <= found <= 0.985
    apart = coverage(crossed, 600, seeds, 0.0, clusters, len(clusters))
    assert apart < found - 0.05, "problems that share a stem taken as separate draws"


@pytest.mark.slow
def test_t_over_seeds_forgets_the_problems():
    """Seeds alike: the means of five seeds on the same 500 problems say nothing of other problems."""
    assert coverage(lambda d: over_seeds(d.mean(1)), 600, 5, 0.0) < 0.87
    assert 0.91 <= coverage(lambda d: over_seeds(d.mean(1)), 600, 5, 0.034) <= 0.98


WIDTHS = [(3, 0.014, 3.7), (5, 0.0, 1.4), (5, 0.014, 2.4), (10, 0.014, 1.7), (10, 0.034, 3.4)]


@pytest.mark.parametrize(("seeds", "seed_sd", "half"), WIDTHS)
def test_half_widths_are_those_of_the_study(seeds, seed_sd, half):
    rng = np.random.default_rng(3)
    found = [crossed(draws(rng, seeds, seed_sd)).half_width for _ in range(100)]
    assert 100 * np.median(found) == pytest.approx(half, rel=0.1)


def test_quantiles_are_those_of_the_tables():
    assert [round(quantile(0.975, df), 3) for df in (1, 2, 4, 9)] == [12.706, 4.303, 2.776, 2.262]
