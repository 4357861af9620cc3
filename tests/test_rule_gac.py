"""GAC's three cases by hand, its choices, sequences of gradients, and what holds for any two vectors."""

from math import cos, isclose, radians, sin, sqrt

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from delaysim.rules.gac import Params, cosine, direction

PREVIOUS = torch.tensor([0.0, 3.0, 4.0], dtype=torch.float64)
UNIT = PREVIOUS / 5
ACROSS = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)


def at(c, length=2.0):
    """A gradient of cosine c with PREVIOUS."""
    return length * (c * UNIT + sqrt(1 - c**2) * ACROSS)


def applied(gradient, **params):
    return direction(gradient, PREVIOUS, Params(**params))[0]


@pytest.mark.parametrize("c", [-1.0, -0.4, -0.05, 0.0, 0.03, 0.0499])
@pytest.mark.parametrize("params", [{}, {"between": "floor", "above": "remove"}])
def test_up_to_low_nothing_is_done(c, params):
    assert applied(at(c), **params) is not None
    assert torch.equal(applied(at(c), **params), at(c))


@pytest.mark.parametrize("c", [0.0501, 0.1, 0.2999])
def test_between_the_part_along_the_previous_gradient_is_taken_out(c):
    found = applied(at(c))
    assert torch.allclose(found, 2 * sqrt(1 - c**2) * ACROSS, atol=1e-14)
    assert abs(float(found.dot(PREVIOUS))) < 1e-13


@pytest.mark.parametrize("c", [0.3001, 0.7, 1.0])
def test_above_high_the_step_is_skipped_unless_told_otherwise(c):
    assert applied(at(c)) is None
    rest = 2 * sqrt(max(1 - c**2, 0)) * ACROSS
    assert torch.allclose(applied(at(c), above="remove"), rest, atol=1e-7 if c == 1 else 1e-14)
    floor = applied(at(c), above="floor")
    assert torch.allclose(floor, rest + 0.05 / sqrt(1 - 0.05**2) * rest.norm() * UNIT, atol=1e-7 if c == 1 else 1e-14)


@pytest.mark.parametrize("c", [0.06, 0.2, 0.29])
@pytest.mark.parametrize("low", [0.0, 0.02, 0.05])
def test_floor_leaves_the_cosine_at_low(c, low):
    found = applied(at(c), between="floor", low=low)
    assert cosine(found, PREVIOUS) == pytest.approx(low, abs=1e-14)
    assert float(found.dot(ACROSS)) == pytest.approx(2 * sqrt(1 - c**2), rel=1e-14)


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("between", ["remove", "floor"])
def test_opposite_gradients_count_only_without_the_sign(signed, between):
    found = applied(at(-0.2), signed=signed, between=between)
    if signed:
        assert torch.equal(found, at(-0.2))
    else:
        assert cosine(found, PREVIOUS) == pytest.approx(-0.05 if between == "floor" else 0.0, abs=1e-14)
        assert torch.allclose(found, applied(at(0.2), between=between) * torch.tensor([1, -1, -1]), atol=1e-14)
    assert (applied(at(-0.8), signed=signed) is None) == (not signed)


def test_the_first_gradient_is_applied_and_remembered():
    for previous in ("raw", "applied"):
        found, remembered = direction(at(0.2), None, Params(previous=previous))
        assert torch.equal(found, at(0.2))
        assert torch.equal(remembered, at(0.2))


def plane(degrees, length=1.0):
    angle = torch.tensor(degrees, dtype=torch.float64).deg2rad()
    return length * torch.stack([angle.cos(), angle.sin()])


def run(gradients, **params):
    """What is applied of a sequence of gradients, and what is remembered after each."""
    remembered, found = None, []
    for gradient in gradients:
        step, remembered = direction(gradient, remembered, Params(**params))
        found.append((step, remembered))
    return found


def test_three_gradients_compared_as_computed():
    """At 0, 80 and 150 degrees: cos 80 = .17 is between, cos 70 = .34 is above; each compares with the one before."""
    first, second, third = run([plane(0), plane(80), plane(150)])
    assert torch.equal(first[0], plane(0))
    assert torch.allclose(second[0], plane(90, sin(radians(80))), atol=1e-12)
    assert torch.equal(second[1], plane(80))
    assert third[0] is None
    assert torch.equal(third[1], plane(150)), "a skipped gradient is still the next one's previous"


def test_three_gradients_compared_with_what_was_applied():
    """The second was turned to 90 degrees: the third stands at 60 to it, cos .5, and is skipped; 90 is kept."""
    gradients = [plane(0), plane(80), plane(150), plane(12)]
    first, second, third, fourth = run(gradients, previous="applied")
    assert torch.equal(first[1], plane(0))
    assert torch.equal(second[1], second[0])
    assert third[0] is None
    assert torch.equal(third[1], second[1])
    assert torch.allclose(fourth[0], plane(0, cos(radians(12))), atol=1e-12), "cos 78 with 90, not with 150"
    assert torch.equal(run(gradients)[3][0], plane(12)), "as computed: cos 138 with 150 is negative"


@pytest.mark.parametrize("choices", [{}, {"above": "remove", "between": "floor"}, {"signed": False, "above": "floor"}])
def test_a_gradient_of_0_is_nobodys_direction(choices):
    nothing = torch.zeros(3, dtype=torch.float64)
    assert cosine(nothing, PREVIOUS) == cosine(PREVIOUS, nothing) == cosine(nothing, nothing) == 0.0
    found, remembered = direction(nothing, PREVIOUS, Params(**choices))
    assert not found.any()
    assert torch.equal(direction(PREVIOUS, remembered, Params(**choices))[0], PREVIOUS)


def test_cosines():
    for c in (-1.0, -0.3, 0.0, 0.5, 1.0):
        assert cosine(at(c, 1e-3), PREVIOUS) == pytest.approx(c, abs=1e-14)
    single = [torch.tensor([1e-30, 2e-30]), torch.tensor([2e30, 4e30])]
    assert cosine(*single) == pytest.approx(1.0, rel=1e-6), "beyond what single precision could square"


NUMBERS = st.floats(-1e4, 1e4).map(lambda x: round(x, 4))
PAIRS = st.integers(1, 6).flatmap(
    lambda n: st.tuples(*[st.lists(NUMBERS, min_size=n, max_size=n)] * 2).map(
        lambda pair: tuple(torch.tensor(x, dtype=torch.float64) for x in pair)
    )
)
CHOICES = st.builds(
    lambda low, more, **rest: Params(low=low, high=low + more, **rest),
    low=st.floats(0, 0.9),
    more=st.floats(0, 0.5),
    between=st.sampled_from(["remove", "floor"]),
    above=st.sampled_from(["skip", "remove", "floor"]),
    signed=st.booleans(),
    previous=st.sampled_from(["raw", "applied"]),
)


@settings(deadline=None, max_examples=300)
@given(PAIRS, CHOICES)
def test_projection_never_lengthens_the_gradient_and_never_aligns_it_more(pair, params):
    gradient, previous = pair
    kept = gradient.clone(), previous.clone()
    found, _ = direction(gradient, previous, params)
    assert torch.equal(gradient, kept[0])
    assert torch.equal(previous, kept[1])
    if found is not None:
        assert float(found.norm()) <= float(gradient.norm()) * (1 + 1e-12)
        before, after = float(gradient.dot(previous)), float(found.dot(previous))
        slack = 1e-12 * float(gradient.norm() * previous.norm())
        assert abs(after) <= abs(before) + slack
        assert before * after >= -slack * abs(before)


@settings(deadline=None, max_examples=200)
@given(PAIRS, CHOICES)
def test_only_the_part_along_the_previous_gradient_ever_changes(pair, params):
    gradient, previous = pair
    found, _ = direction(gradient, previous, params)
    if found is not None and previous.any():
        change, unit = found - gradient, previous / previous.norm()
        assert float((change - change.dot(unit) * unit).norm()) <= 1e-12 * float(gradient.norm())


@settings(deadline=None, max_examples=200)
@given(PAIRS, CHOICES)
def test_an_orthogonal_gradient_is_left_as_it_is(pair, params):
    """The two in coordinates of their own, so that the product is exactly 0."""
    gradient, previous = torch.cat([pair[0], 0 * pair[1]]), torch.cat([0 * pair[0], pair[1]])
    found, remembered = direction(gradient, previous, params)
    assert torch.equal(found, gradient)
    assert torch.equal(remembered, gradient)


@settings(deadline=None, max_examples=200)
@given(PAIRS, CHOICES, st.sampled_from([2.0**-40, 0.25, 8.0, 2.0**60]))
def test_the_size_of_the_previous_gradient_does_not_matter(pair, params, factor):
    one, other = direction(*pair, params)[0], direction(pair[0], factor * pair[1], params)[0]
    assert (one is None) == (other is None)
    if one is not None:
        assert torch.allclose(one, other, rtol=1e-12, atol=1e-12 * float(pair[0].norm()))
    assert isclose(cosine(*pair), cosine(pair[0], factor * pair[1]), abs_tol=1e-12)
