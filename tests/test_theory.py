"""The theory's numbers: pinned values, exponents found again by minimising, bounds on random pairs, the command.

Independent routes where there are any: integrals for constants, Lambert's W for a root, loops for sums, scipy's
minimiser for step sizes and thresholds, exact sums over small distributions for the bounds.
"""

import json
import math
import re
import shutil
import subprocess
import sys
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize, minimize_scalar
from scipy.special import lambertw
from settings import rows, run, small_config

from delaysim import theory as t
from delaysim.cli.theory import theory
from delaysim.errors import UserError
from delaysim.files import read_json

EPS = st.floats(1e-6, 50.0)
TAU4 = st.floats(0, 1e15)
UPDATES = st.integers(2, 10**7)
PAPER = ("--updates", "800", "--eps", "0.28", "--G", "8")

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


# the command


def test_the_table_of_the_paper_fits_80_columns(capsys):
    assert theory(["--D", "0", "32", "128", "512", "1000", *PAPER]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    for part in ("0.4447", "0.02811", "250.3", "0.331", "2.263e+04", "12.3", "x0.435"):
        assert part in text
    table = {line[:13].strip(): line[13:].split() for line in lines if line.startswith(("constant", "min("))}
    assert table["constant 128"] == [
        "2.68e+08", "2.903", "0.219", "0.00392", "0.0013", "0.319", "0.963", "3.82", "2.84",
    ]  # fmt: skip
    assert table["min(n, 512)"][:3] == ["3.35e+10", "3.625", "0.075"]
    assert table["constant 1000"][2] == "none"
    assert table["constant 0"] == ["0", "-", "0.500", "0.0354", "0.0354", "0", "0", "-", "-"]


def test_json_carries_every_number(capsys):
    assert theory(["--D", "0", "32", "--updates", "100", "--eps", "0.5", "--G", "4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(s["schedule"], s["D"]) for s in found["schedules"]] == [
        ("constant", 0), ("fixed", 0), ("constant", 32), ("fixed", 32),
    ]  # fmt: skip
    expected = t.report(t.fixed_delay_fourth_moment(100, 32), 100, 0.5, 4)
    last = found["schedules"][-1]
    assert t.Report(**{**{k: last[k] for k in last if k not in ("schedule", "D")},
                       "gmc": t.Tuned(**last["gmc"]), "tic": t.Tuned(**last["tic"])}) == expected  # fmt: skip
    assert found["schedules"][0]["p"] is None, "JSON has no infinity"
    assert found["constants"]["gmc_constant"] == t.gmc_constant(0.5)


def test_the_papers_setting_is_the_default(capsys):
    for arguments in (["--D", "64"], ["--D", "64", *PAPER]):
        theory(arguments)
    first, second = capsys.readouterr().out.split("setting")[1:]
    assert first == second


@pytest.fixture(scope="module")
def folder(base_cache, tmp_path_factory):
    """Three small runs under a fixed delay."""
    root = tmp_path_factory.mktemp("theory")
    for estimator in ("gmc", "tic", "reinforce"):
        eps = () if estimator == "reinforce" else ("eps=0.1",)
        run(small_config("D=3", f"estimator={estimator}", *eps), root / estimator)
    return root


def of_run(capsys, path, *arguments):
    assert theory([str(path), "--json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_run_directory_gives_its_own_delays_and_settings(folder, capsys):
    found = of_run(capsys, folder / "gmc")
    realised, mean, constant = found["schedules"]
    assert (found["n_updates"], found["eps"], found["group_size"]) == (8, 0.1, 4)
    assert (
        realised["tau4"] == t.fixed_delay_fourth_moment(8, 3) == read_json(folder / "gmc/moments.json")["delay4_mean"]
    )
    assert (mean["D"], mean["tau4"]) == (2.25, pytest.approx(2.25**4))
    assert (constant["D"], constant["tau4"]) == (3, 81)
    assert of_run(capsys, folder / "gmc", "--eps", "0.28")["eps"] == 0.28


def test_a_run_that_has_not_ended_is_read_as_far_as_it_is(folder, capsys, tmp_path):
    shutil.copytree(folder / "gmc", tmp_path / "run")
    (tmp_path / "run/trace.parquet").unlink()
    assert of_run(capsys, tmp_path / "run") == of_run(capsys, folder / "gmc")
    groups = tmp_path / "run/groups.jsonl"
    groups.write_text("".join(line + "\n" for line in groups.read_text().splitlines()[:10]))
    found = of_run(capsys, tmp_path / "run")
    assert (found["n_updates"], found["schedules"][0]["tau4"]) == (5, t.fixed_delay_fourth_moment(5, 3))
    theory([str(tmp_path / "run")])
    assert "so far         5 of 8 updates" in capsys.readouterr().out


@pytest.mark.parametrize(("estimator", "says"), [("gmc", "gmc removed"), ("reinforce", "reinforce has none")])
def test_what_a_run_prints_fits_80_columns(folder, capsys, estimator, says):
    theory([str(folder / estimator)])
    text = capsys.readouterr().out
    assert says in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("estimator", ["gmc", "tic"])
def test_the_measured_mass_stands_beside_its_bound(folder, capsys, tmp_path, estimator):
    path = shutil.copytree(folder / estimator, tmp_path / "run")
    given = [row | {"kl_pi_mu": 0.02 * row["delay"] if row["group"] else None} for row in rows(path, "groups")]
    (path / "groups.jsonl").write_text("".join(json.dumps(row) + "\n" for row in given))
    found = of_run(capsys, path)["measured"]
    known = given[1:]
    assert found["removed"] == pytest.approx(np.mean([row["removed"] for row in known]))
    assert found["kl_pi_mu"] == pytest.approx(np.mean([row["kl_pi_mu"] for row in known]))
    assert found["bound"] == pytest.approx(found["kl_pi_mu"] / getattr(t, f"{estimator}_constant")(0.1))


def test_a_bound_is_given_only_where_there_is_one(folder, capsys, tmp_path):
    path = shutil.copytree(folder / "reinforce", tmp_path / "run")
    given = [row | {"kl_pi_mu": 0.1} for row in rows(path, "groups")]
    (path / "groups.jsonl").write_text("".join(json.dumps(row) + "\n" for row in given))
    assert set(of_run(capsys, path)["measured"]) == {"estimator", "removed"}
    (path / "groups.jsonl").unlink()
    assert of_run(capsys, path)["measured"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give either a run directory or delays with --D; e.g. delaysim theory --D 32 128"),
        (["x", "--D", "3"], "give either"),
        (["--D", "3.5"], "3.5: give a whole number from 0"),
        (["--D", "1e9"], "1e9: give a whole number"),
        (["--D", "-1"], "e.g. delaysim theory"),
        (["--D", "1", "--updates", "1"], "1: give a whole number from 2"),
        (["--D", "1", "--G", "0"], "0: give a whole number from 1"),
        (["--D", "1", "--eps", "nan"], "nan: give a number above 0"),
        (["--D", "1", "--eps", "x"], "x: give a number above 0"),
        (["--D", "1", "--foo"], "unrecognized arguments: --foo"),
        (["x", "--G", "4"], "drop --updates and --G"),
        (["nowhere"], "nowhere is not a run directory"),
    ],
)
def test_bad_input_is_one_line(arguments, message):
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        theory(arguments)
    assert len(str(caught.value).splitlines()) == 1


def test_a_damaged_or_empty_run_is_one_line(folder, tmp_path):
    path = shutil.copytree(folder / "gmc", tmp_path / "run")
    (path / "trace.parquet").write_bytes(b"PAR1 torn")
    with pytest.raises(UserError, match=r"trace\.parquet: .*copy the run again"):
        theory([str(path)])
    (path / "trace.parquet").unlink()
    (path / "groups.jsonl").write_text("")
    with pytest.raises(UserError, match="has 0 finished updates"):
        theory([str(path)])


def test_the_command_needs_no_torch():
    program = (
        "import sys; from delaysim.cli.theory import theory; theory(['--D', '3']); assert 'torch' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True).returncode == 0
