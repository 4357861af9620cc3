"""The theory's constants, schedules, steps and thresholds: pinned values, and exponents found again by minimising.

Independent routes where there are any: integrals for constants, Lambert's W for a root, loops for sums, scipy's
minimiser for step sizes and thresholds.
"""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize, minimize_scalar
from scipy.special import lambertw

from delaysim import theory as t

EPS = st.floats(1e-6, 50.0)
TAU4 = st.floats(0, 1e15)
UPDATES = st.integers(2, 10**7)


# constants


@pytest.mark.parametrize(
    ("value", "expected", "digits"),
    [
        (t.tic_constant(0.28), 0.0281101, 7),
        (t.gmc_constant(0.28), 0.4446858, 7),
        (t.coefficient_ratio(0.28), 15.8194, 4),
        (t.coefficient_ratio(0.28) ** 2, 250.2548, 4),
        (t.tuned_factor(0.28), 0.3313779, 7),
        (t.tuned_factor(1.0), 0.4989, 4),
        (t.sharp_constant(0.28), 0.474957, 6),
        (t.sharp_constant(1.0), 1.256431, 6),
        (t.sharp_constant(0.28) / t.gmc_constant(0.28), 1.068, 3),
        (t.free_fourth_moment(800), 22627.4, 1),
        (t.free_delay(800), 12.265, 3),
        (t.group_factor(4, 8), 0.757858, 6),
        (t.group_factor(8, 32), 0.574349, 6),
        (t.group_factor(4, 32), 0.435275, 6),
    ],
)
def test_check_values(value, expected, digits):
    assert round(value, digits) == expected


@pytest.mark.parametrize("eps", [1e-9, 1e-5, 9.99e-4, 1.001e-3, 1.01e-3, 0.01, 0.28, 1.0, 30.0])
def test_tic_constant_is_the_integral_of_its_derivative(eps):
    """dc/deps = eps/(1+eps)^2, on either side of the switch to a series."""
    area, _ = quad(lambda u: (eps * u) / (1 + eps * u) ** 2 * eps, 0, 1, epsabs=0, epsrel=1e-13)
    assert t.tic_constant(eps) == pytest.approx(area, rel=1e-11)


@pytest.mark.parametrize("eps", [1e-3, 0.1, 0.28, 1.0, 20.0, 1e6])
def test_sharp_constant_is_a_branch_of_lamberts_w(eps):
    a = 1 / (1 + eps)
    expected = -a - lambertw(-a * math.exp(-a), -1).real
    assert t.sharp_constant(eps) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("eps", [1e-8, 1e-5, 9.9e-5, 1.01e-4, 0.28])
def test_sharp_constant_solves_its_equation_in_fifty_digits(eps):
    with localcontext() as context:
        context.prec = 50
        k = Decimal(t.sharp_constant(eps))
        assert float((k.exp() - 1) / k - 1) == pytest.approx(eps, rel=1e-10)


def test_small_eps_is_where_eps_minus_4_becomes_eps_minus_2_and_tuning_eats_most_of_it():
    eps = 1e-7
    assert t.tic_constant(eps) / (eps**2 / 2) == pytest.approx(1, rel=1e-6)
    assert t.gmc_constant(eps) / (2 * eps) == pytest.approx(1, rel=1e-6)
    assert t.coefficient_ratio(eps) ** 2 * eps**2 == pytest.approx(16, rel=1e-6)
    assert t.tuned_factor(eps) * (4 / eps) ** 0.4 == pytest.approx(1, rel=1e-6)


@given(EPS, EPS)
@settings(deadline=None)
def test_constants_grow_and_keep_their_order(a, b):
    low, high = sorted((a, b))
    for constant in (t.gmc_constant, t.tic_constant, t.sharp_constant):
        assert constant(low) <= constant(high)
    assert t.tic_constant(a) < t.gmc_constant(a) < t.sharp_constant(a) < 2 * t.gmc_constant(a)


# schedules


@given(st.integers(1, 300), st.integers(0, 400))
@settings(deadline=None)
def test_fixed_delay_moment_is_the_loop(n, delay):
    assert t.fixed_delay_fourth_moment(n, delay) == sum(min(i, delay) ** 4 for i in range(n)) / n
    realised = t.fourth_moment([min(i, delay) for i in range(n)])
    assert realised == pytest.approx(t.fixed_delay_fourth_moment(n, delay), rel=1e-12)
    assert realised <= t.constant_fourth_moment(delay)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=50), st.integers(1, 4))
@settings(deadline=None)
def test_the_mean_delay_alone_is_a_lower_bound_and_repeats_change_nothing(delays, times):
    tau4 = t.fourth_moment(delays)
    assert tau4 >= np.mean(delays) ** 4 * (1 - 1e-12)
    assert t.fourth_moment(np.tile(delays, (times, 1))) == pytest.approx(tau4, rel=1e-12)


@pytest.mark.parametrize(
    ("delay", "p", "exponent"),
    [(32, 2.0739, 0.3852), (64, 2.4886, 0.3023), (128, 2.9034, 0.2193), (160, 3.0369, 0.1926), (256, 3.3182, 0.1364),
     (512, 3.7329, 0.0534)],
)  # fmt: skip
def test_exponents_of_a_constant_delay_over_800_updates(delay, p, exponent):
    found = t.report(t.constant_fourth_moment(delay), 800)
    assert (round(found.p, 4), round(found.exponent, 4), found.free) == (p, exponent, False)


def test_warm_up_counts():
    found = t.report([min(n, 512) for n in range(800)], 800)
    assert found == t.report(t.fixed_delay_fourth_moment(800, 512), 800)
    assert found.tau4 == pytest.approx(3.349e10, rel=1e-4)
    assert (round(found.p, 4), round(found.exponent, 4)) == (3.6254, 0.0749)


@given(st.integers(2, 5000), st.integers(0, 10**9))
@settings(deadline=None)
def test_no_delay_that_a_run_can_have_is_beyond_every_guarantee(n, delay):
    """A delay is at most the consuming update, so tau4 stays below N^4; the paper's constant delay need not."""
    assert t.report(t.fixed_delay_fourth_moment(n, delay), n).exponent > 0


def test_a_run_without_delay_is_free():
    found = t.report([0, 0, 0], 800)
    assert (found.p, found.exponent, found.free, found.gmc.delay, found.gmc.eps) == (-math.inf, 0.5, True, 0, 0)
    assert found.gmc.step == found.gmc.rate == 800**-0.5


def test_the_free_region_ends_where_the_exponent_leaves_a_half():
    assert t.rate_exponent(1.5) == t.rate_exponent(-3) == 0.5
    assert t.rate_exponent(1.5 + 1e-9) < 0.5
    assert t.rate_exponent(4 - 1e-9) > 0
    assert t.rate_exponent(4) is None
    assert t.free_fourth_moment(800) == pytest.approx(t.constant_fourth_moment(t.free_delay(800)), rel=1e-12)
    assert t.report(22627, 800).free
    assert not t.report(22628, 800).free


# step sizes and rates, by minimising the bound


def least_bound(tau4, n, constant, unit=t.UNIT):
    """Least value of the three-term bound over the step; its logarithm is convex in the step's."""
    centre = math.log(t.tuned_step(tau4, n, constant, unit))
    found = minimize_scalar(
        lambda x: math.log(t.bound(math.exp(x), tau4, n, constant, unit)), bounds=(centre - 5, centre + 5),
        method="bounded", options={"xatol": 1e-10},
    )  # fmt: skip
    return math.exp(found.fun)


@pytest.mark.parametrize("p", [0.0, 1.0, 1.4, 1.7, 2.0, 3.0, 3.03693, 3.7329, 4.0, 4.5])
@pytest.mark.parametrize("constant", [t.gmc_constant(0.28), t.tic_constant(0.28)])
def test_rate_exponents_are_those_of_the_least_bound(p, constant):
    low, high = 10**50, 10**54
    slope = math.log10(least_bound(high**p, high, constant) / least_bound(low**p, low, constant)) / 4
    if p < 4:
        assert slope == pytest.approx(-t.rate_exponent(p), abs=1e-3)
    else:
        assert t.rate_exponent(p) is None
        assert slope == pytest.approx((p - 4) / 5, abs=1e-6), "the bound does not fall with N"


@given(TAU4, UPDATES, EPS, st.builds(t.Unit, *[st.floats(0.01, 100)] * 3))
@settings(max_examples=60, deadline=None)
def test_the_tuned_step_is_within_a_known_factor_of_the_best(tau4, n, eps, unit):
    """In [0.9, 2] of the rate: the decay and one of the other terms alone cost 2a and 1.649b, against a + b."""
    constant = t.gmc_constant(eps)
    rate, least = t.rate(tau4, n, constant, unit), least_bound(tau4, n, constant, unit)
    assert 0.9 * rate < least <= t.bound(t.tuned_step(tau4, n, constant, unit), tau4, n, constant, unit) * (1 + 1e-9)
    assert t.bound(t.tuned_step(tau4, n, constant, unit), tau4, n, constant, unit) <= 2 * rate * (1 + 1e-9)


@pytest.mark.parametrize(
    ("delay", "steps", "terms"),
    [(32, (0.011871, 0.003934), (0.10530, 0.31776)), (128, (0.003916, 0.001298), (0.31921, 0.96328))],
)
def test_unit_constant_step_and_delay_terms(delay, steps, terms):
    found = t.report(delay**4, 800)
    assert (round(found.gmc.step, 6), round(found.tic.step, 6)) == steps
    assert (round(found.gmc.delay, 5), round(found.tic.delay, 5)) == terms
    assert found.gmc.delay / found.tic.delay == pytest.approx(t.tuned_factor(0.28), rel=1e-12)
    assert found.gmc.rate - found.gmc.delay == pytest.approx(0.035355, abs=1e-6)


# thresholds


def slopes(best, n=10**24, tau4=1e12):
    """Powers of tau4 and of N in best(tau4, n)."""
    return math.log10(best(tau4 * 10, n) / best(tau4, n)), math.log10(best(tau4, n * 10) / best(tau4, n))


@pytest.mark.parametrize(
    ("method", "constant", "powers"),
    [("gmc", t.gmc_constant, (1 / 7, -3 / 14)), ("tic", t.tic_constant, (1 / 9, -1 / 6))],
)
def test_threshold_exponents_are_those_of_the_least_tuned_rate(method, constant, powers):
    """The second moment costs a factor 1 + eps; the rest is in the delay term."""

    def best(tau4, n):
        return math.exp(
            minimize_scalar(
                lambda x: math.exp(x) * n**-0.5 + t.delay_term(tau4, n, constant(math.exp(x))),
                bounds=(-20, 0), method="bounded", options={"xatol": 1e-9},
            ).x
        )  # fmt: skip

    assert slopes(best) == pytest.approx(powers, abs=2e-3)
    assert slopes(lambda tau4, n: t.optimal_eps(tau4, n, method)) == pytest.approx(powers, abs=1e-12)


@pytest.mark.parametrize(("constant", "power"), [(t.gmc_constant, 1 / 3), (t.tic_constant, 1 / 5)])
def test_step_and_threshold_chosen_together_have_other_exponents(constant, power):
    """The tuned rate overstates the bias where N^(-1/2) is the smaller step; the bound itself wants a smaller eps."""

    def best(tau4, n):
        def total(x):
            step, eps = np.exp(x[0]) * n**-0.5, math.exp(x[1])
            return math.log(t.bound(step, tau4, n, constant(eps)) / n**-0.5 + np.exp(x[0]) * eps)

        options = {"xatol": 1e-11, "fatol": 1e-15, "maxiter": 10**4, "maxfev": 10**4}
        return math.exp(minimize(total, [0.0, -6.0], method="Nelder-Mead", options=options).x[1])

    assert slopes(best, 10**12, 1e6) == pytest.approx((power, -1.5 * power), abs=5e-3)


@pytest.mark.parametrize(
    ("delay", "root", "best"),
    [(32, 7.24579, 1.72980), (64, 10.7672, 2.57047), (128, 16.0, 3.81970), (256, 23.7759, 5.67605),
     (512, 35.3309, 8.43458)],
)  # fmt: skip
def test_every_delay_of_the_paper_saturates_its_threshold(delay, root, best):
    assert (delay**4) ** (1 / 7) == pytest.approx(root, rel=1e-5)
    found = t.report(delay**4, 800).gmc
    assert (found.eps, round(found.eps_uncapped, 5)) == (1.0, best)


@given(TAU4, UPDATES, st.sampled_from(sorted(t.METHODS)))
@settings(deadline=None)
def test_a_threshold_saturates_exactly_outside_the_free_region(tau4, n, method):
    best = t.optimal_eps(tau4, n, method)
    assert (best < 1) == (tau4 < t.free_fourth_moment(n)) or best == pytest.approx(1, rel=1e-12)
    assert t.optimal_eps(tau4, n, method, t.Unit(threshold=3), math.inf) >= best
