"""The bounds on removed importance mass: exact sums over small distributions, random pairs; and what is refused."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delaysim import theory as t

# removed mass


def excess(rho, eps):
    """Mass that GMC takes from groups of ratios, last axis."""
    return np.maximum(rho.mean(-1) - 1 - eps, 0)


def dropped(rho, eps):
    """Mass that TIC takes from single responses."""
    return rho * (rho > 1 + eps)


def random_pairs(count, seed=0):
    """mu and rho of random pairs of distributions over 2 to 6 outcomes, from close ones to nearly disjoint ones."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        size, spread = int(rng.integers(2, 7)), 10 ** rng.uniform(-1.5, 1)
        mu = np.maximum(rng.dirichlet(np.full(size, 10 ** rng.uniform(-1, 1))), 1e-12)
        pi = mu * np.exp(spread * rng.normal(size=size))
        mu, pi = mu / mu.sum(), pi / pi.sum()
        yield mu, pi / mu


def kl(mu, rho):
    """KL(pi||mu), exact."""
    return float(np.sum(mu * rho * np.log(rho)))


@pytest.mark.parametrize("eps", [0.05, 0.28, 1.0])
def test_removed_mass_never_exceeds_its_bound(eps):
    worst = {"gmc": 0.0, "pair": 0.0, "tic": 0.0}
    for mu, rho in random_pairs(4000):
        limit = {name: t.removed_bound(kl(mu, rho), getattr(t, f"{name}_constant")(eps)) for name in ("gmc", "tic")}
        pairs = np.stack(np.broadcast_arrays(rho[:, None], rho[None, :]), -1)
        found = {
            "gmc": (mu @ excess(rho[:, None], eps), limit["gmc"]),
            "pair": (mu @ excess(pairs, eps) @ mu, limit["gmc"]),
            "tic": (mu @ dropped(rho, eps), limit["tic"]),
        }
        worst = {name: max(worst[name], removed / most) for name, (removed, most) in found.items()}
    assert max(worst.values()) <= 1
    assert worst["gmc"] > 0.85
    assert worst["tic"] > 0.8
    assert worst["pair"] < worst["gmc"], "Jensen leaves room in larger groups"


def rare(ratio, chance=1e-7):
    """Two outcomes, the first rare under mu and favoured by `ratio` under pi."""
    return np.array([chance, 1 - chance]), np.array([ratio, (1 - chance * ratio) / (1 - chance)])


@pytest.mark.parametrize("eps", [0.05, 0.28, 1.0])
def test_which_constants_can_be_no_larger(eps):
    """A rare response reaches kappa* with rho = e^kappa*, and c just above the threshold; l stays l/kappa* below."""
    sharp = t.sharp_constant(eps)
    mu, rho = rare(math.exp(sharp))
    removed = mu @ excess(rho[:, None], eps)
    assert removed / t.removed_bound(kl(mu, rho), sharp) == pytest.approx(1, abs=1e-4)
    assert removed / t.removed_bound(kl(mu, rho), t.gmc_constant(eps)) == pytest.approx(
        t.gmc_constant(eps) / sharp, abs=1e-4
    )
    mu, rho = rare((1 + eps) * (1 + 1e-9))
    assert mu @ dropped(rho, eps) / t.removed_bound(kl(mu, rho), t.tic_constant(eps)) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(("ratio", "method"), [(math.exp(0.475), "gmc"), (1.29, "tic")])
def test_the_other_direction_of_kl_bounds_nothing(ratio, method):
    """KL(mu||pi), which k1 and k3 estimate from responses of mu, is smaller than what is removed allows."""
    mu, rho = rare(ratio)
    constant = getattr(t, f"{method}_constant")(0.28)
    removed = mu @ (excess(rho[:, None], 0.28) if method == "gmc" else dropped(rho, 0.28))
    reverse = -float(np.sum(mu * np.log(rho)))
    assert t.removed_bound(reverse, constant) < removed <= t.removed_bound(kl(mu, rho), constant)


@given(st.lists(st.floats(-60, 30), min_size=1, max_size=16), st.floats(1e-3, 5))
@settings(deadline=None)
def test_the_plug_in_bounds_each_group_and_not_only_their_mean(log_ratios, eps):
    """Whatever the ratios are: GMC, truncation at 1+eps (which shares GMC's constant), TIC."""
    rho, estimate = np.exp(log_ratios), t.kl_estimate(log_ratios).nats
    slack = 1 + 1e-9
    assert excess(rho, eps) <= t.removed_bound(estimate, t.sharp_constant(eps)) * slack + 1e-12
    assert np.maximum(rho - 1 - eps, 0).mean() <= t.removed_bound(estimate, t.gmc_constant(eps)) * slack + 1e-12
    assert dropped(rho, eps).mean() <= t.removed_bound(estimate, t.tic_constant(eps)) * slack + 1e-12
    assert excess(rho, eps) <= np.maximum(rho - 1 - eps, 0).mean() * slack
    assert np.maximum(rho - 1 - eps, 0).mean() <= dropped(rho, eps).mean() * slack


def test_kl_estimate_of_the_worked_group_and_the_estimators_of_the_other_direction():
    log_rho = np.array([0.35, -0.2, 1.5, -1.0])
    assert t.kl_estimate(log_rho) == (pytest.approx(0.900054, abs=1e-6), 0)
    assert -log_rho.mean() == pytest.approx(-0.1625, abs=1e-12)
    assert (np.exp(log_rho) - 1 - log_rho).mean() == pytest.approx(0.609342, abs=1e-6)


@given(st.lists(st.floats(-8, 8), min_size=2, max_size=12))
@settings(deadline=None)
def test_kl_estimate_is_unbiased(weights):
    """mu uniform: the mean over all outcomes is the expectation."""
    pi = np.exp(weights) / np.exp(weights).sum()
    rho = pi * len(pi)
    assert t.kl_estimate(np.log(rho)).nats == pytest.approx(kl(1 / len(pi), rho), rel=1e-9, abs=1e-14)


def test_kl_estimate_saturates_and_says_so():
    edge = t.kl_estimate([30.0])
    assert edge == (pytest.approx(29 * math.exp(30) + 1, rel=1e-12), 0)
    assert t.kl_estimate([31.0, 1e300, math.inf]) == (pytest.approx(edge.nats, rel=1e-12), 3)
    assert t.kl_estimate([-math.inf, -1e300]) == (1.0, 0)
    assert t.kl_estimate([[0.0, 0.0]]) == (0.0, 0)
    assert t.kl_estimate(1e-5).nats == pytest.approx(1e-10 / 2 + 1e-15 / 3, rel=1e-9)


# refusals


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: t.gmc_constant(0), "eps=0"),
        (lambda: t.tic_constant(math.nan), "eps=nan"),
        (lambda: t.sharp_constant(-1), "eps=-1"),
        (lambda: t.fourth_moment([]), "one or more"),
        (lambda: t.fourth_moment([1, -1]), "none below 0"),
        (lambda: t.fourth_moment([math.nan]), "finite"),
        (lambda: t.fixed_delay_fourth_moment(0, 1), "n_updates=0"),
        (lambda: t.fixed_delay_fourth_moment(5, -1), "delay=-1"),
        (lambda: t.growth_exponent(-1.0, 800), "tau4=-1"),
        (lambda: t.growth_exponent(10.0, 1), "n_updates=1: give 2 or more"),
        (lambda: t.rate_exponent(math.nan), "not a number"),
        (lambda: t.tuned_step(1.0, 800, 0.0), "constant=0"),
        (lambda: t.bound(0.0, 1.0, 800, 1.0), "step=0"),
        (lambda: t.optimal_eps(1.0, 800, "grpo"), "choose one of gmc, tic"),
        (lambda: t.group_factor(0, 8), "group size=0"),
        (lambda: t.removed_bound(-0.1, 1.0), "kl=-0.1"),
        (lambda: t.kl_estimate([0.0, math.nan]), "none that is not a number"),
        (lambda: t.report(math.inf, 800), "tau4=inf"),
    ],
)
def test_impossible_values_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
