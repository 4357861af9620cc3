r"""Equality of expressions with algebra: values to many digits, Math-Verify where there are none.

Two expressions are equal where they agree to `AGREED` digits *relative* to their size, and as many more as their
numbers have, at several points in the symbols. Points at which either side is not real are left out, unless all symbols
are positive there. In worker processes only.
"""

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import lgamma
from typing import Any

import mpmath
import sympy
from math_verify import LatexExtractionConfig, parse, verify

from delaysim.grading.expression import UnreadableError, read
from delaysim.grading.scalar import Equation
from delaysim.grading.tree import tree
from delaysim.grading.values import computed

Value = Callable[[dict[Any, Any]], Any]

PARSE_S = COMPARE_S = 3
"""Time limits of one call [s], whole numbers: Math-Verify rounds fractions of a second down to no time at all."""
DIGITS, AGREED = 40, 25
"""Computed with, and compared, for numbers of few digits."""
LARGEST = 30_000
"""Digits of a value at most: a larger one is not computed."""
POINTS = 6
INTEGER_POINTS = 24


class TooLargeError(ValueError):
    """A value has too many digits to be computed."""


@dataclass(frozen=True)
class Symbolic:
    """Knows algebra. Tolerances as in `delaysim.grading.scalar.Check`."""

    rel_tol: float = 0.0
    tolerance: float = 0.0

    def equal(self, gold: str, answer: str) -> bool:
        one, other = _tree(gold), _tree(answer)
        if one is None or other is None:
            return False
        try:
            return _equal(one, other, self)
        except TooLargeError:
            return bool(one == other)

    def equivalent(self, gold: Equation, answer: Equation) -> bool:
        sides = [_tree(side) for side in (*gold, *answer)]
        if any(side is None for side in sides):
            return False
        a, b, c, d = sides
        return _proportional(a - b, c - d)

    def foreign(self, gold: str, answer: str) -> bool:
        """Math-Verify's word on what is more than arithmetic: sums, integrals, limits."""
        one, other = (parse(f"${text}$", FORMULAS, parsing_timeout=PARSE_S, **FIRST) for text in (gold, answer))
        return bool(one and other and verify(one, other, timeout_seconds=COMPARE_S))


FORMULAS = [LatexExtractionConfig()]
FIRST: dict[str, Any] = {"extraction_mode": "first_match", "fallback_mode": "no_fallback"}


def _tree(text: str) -> Any:
    try:
        return tree(read(text))
    except UnreadableError:
        return None


# Size, before anything is computed.


def _digits(*expressions: Any) -> int:
    """Digits in which values must agree, so that large numbers differ where they do. Raises TooLargeError."""
    try:
        return DIGITS + int(max(map(_magnitude, expressions)))
    except MemoryError:
        raise
    except Exception as error:
        raise TooLargeError from error


def _magnitude(node: Any) -> float:
    """Upper bound of the digits that a value needs, symbols counted as small. Raises TooLargeError."""
    sizes = [_magnitude(part) for part in node.args]
    if node.is_Rational:
        return _bounded(max(abs(node.p), node.q).bit_length() / 3)
    if node.is_Pow or isinstance(node, sympy.exp):
        return _power(node, sizes)
    if isinstance(node, sympy.factorial | sympy.binomial | sympy.gamma):
        argument = node.args[0]
        value = abs(float(argument)) if argument.is_Rational and sizes[0] < 8 else 10 ** min(sizes[0], 9)
        return _bounded(lgamma(value + 1) / 2 + 1)
    return _bounded(sum(sizes)) if sizes else 1.0


def _power(node: Any, sizes: list[float]) -> float:
    base, exponent = (1.0, sizes[0]) if isinstance(node, sympy.exp) else sizes
    if not node.exp.free_symbols and exponent < 8:
        return _bounded(base * max(1.0, float(abs(computed(node.exp, {})))))
    return _bounded(base * 10 ** min(exponent, 9))


def _bounded(size: float) -> float:
    if size > LARGEST:
        raise TooLargeError
    return size


# Values.


def _equal(one: Any, other: Any, check: Symbolic) -> bool:
    digits = _digits(one, other)
    values = [_evaluator(expression, digits) for expression in (one, other)]
    if not one.free_symbols | other.free_symbols:
        return _equal_numbers(one, other, values, digits, check)
    seen = 0
    for point, certain in _points(one, other):
        verdict = _agree(values[0](point), values[1](point), digits, check, certain)
        if verdict is False:
            return False
        seen += verdict is True
    return seen >= 2 or (seen == 0 and _library(one, other))


def _equal_numbers(one: Any, other: Any, values: list[Value], digits: int, check: Symbolic) -> bool:
    a, b = (value({}) for value in values)
    if a is None or b is None:
        return _library(one, other)
    small = mpmath.mpf(10) ** -(DIGITS // 2)
    if min(abs(a), abs(b)) < small and max(abs(a), abs(b)) < small and not (check.rel_tol or check.tolerance):
        return bool(sympy.simplify(one - other) == 0)
    return _near(a, b, digits, check)


def _agree(a: Any, b: Any, digits: int, check: Symbolic, certain: bool) -> bool | None:
    """Whether two values agree; None where the point says nothing."""
    if a is None or b is None or (not certain and (mpmath.im(a) or mpmath.im(b))):
        return None
    return _near(a, b, digits, check)


def _near(a: Any, b: Any, digits: int, check: Symbolic) -> bool:
    with mpmath.workdps(2 * digits):
        difference, size = abs(a - b), abs(a)
        if check.rel_tol or check.tolerance:
            return bool(difference <= max(check.rel_tol * size, mpmath.mpf(check.tolerance)))
        return bool(difference <= mpmath.mpf(10) ** -(digits - DIGITS + AGREED) * max(size, abs(b)))


def _evaluator(expression: Any, digits: int) -> Value:
    """The finite value of an expression at a point, None where it has none."""

    def value(point: dict[Any, Any]) -> Any:
        try:
            with mpmath.workdps(2 * digits):
                return _finite(computed(expression, point))
        except MemoryError:
            raise
        except Exception:
            return None

    return value


def _finite(value: Any) -> Any:
    """A real number where the imaginary part is noise; None for infinities."""
    if not mpmath.isfinite(value):
        return None
    noise = abs(mpmath.im(value)) <= mpmath.mpf(10) ** -(DIGITS - 10) * abs(mpmath.re(value))
    return mpmath.re(value) if noise else value


def _points(one: Any, other: Any) -> Iterator[tuple[dict[Any, Any], bool]]:
    """Where to compare, and whether a value that is not real counts there: all symbols positive, then mixed signs.

    Expressions in floor, ceiling, factorial or a power of a negative number are compared at whole numbers.
    """
    symbols, draw = sorted(one.free_symbols | other.free_symbols, key=str), random.Random("delaysim.grading")
    if _discrete(one) or _discrete(other):
        for index in range(INTEGER_POINTS):
            yield {s: sympy.Integer(draw.randrange(2, 12) + index // 3) for s in symbols}, True
        return
    for index, signs in zip(range(2 * POINTS), itertools.cycle(_signs(len(symbols))), strict=False):
        positive = index < POINTS
        values = [sympy.Rational(draw.randrange(200, 3000), 1009) for _ in symbols]
        pairs = zip(symbols, values, signs, strict=True)
        yield {s: value if positive else sign * value for s, value, sign in pairs}, positive


def _signs(count: int) -> list[tuple[int, ...]]:
    return [(-1,) * count, *[tuple(-1 if n == place else 1 for n in range(count)) for place in range(min(count, 5))]]


def _discrete(expression: Any) -> bool:
    negative = any(p.base.is_number and p.base.is_negative and p.exp.free_symbols for p in expression.atoms(sympy.Pow))
    return negative or expression.has(sympy.floor, sympy.ceiling, sympy.factorial, sympy.binomial)


def _proportional(one: Any, other: Any) -> bool:
    """Whether two expressions are the same but for a constant factor: equations `one = 0` and `other = 0` agree."""
    try:
        digits = _digits(one, other)
    except TooLargeError:
        return bool(one == other)
    first, second, ratios = _evaluator(one, digits), _evaluator(other, digits), []
    for point, certain in _points(one, other):
        a, b = first(point), second(point)
        if a is None or b is None or (not certain and (mpmath.im(a) or mpmath.im(b))):
            continue
        if a == 0 or b == 0:
            if a == b:
                continue
            return False
        ratios.append(a / b)
    return len(ratios) >= 3 and all(_near(ratios[0], ratio, digits, Symbolic()) for ratio in ratios)


def _library(one: Any, other: Any) -> bool:
    """Math-Verify's own comparison, for what has no value: sums, limits, unknown functions."""
    return bool(verify(one, other, timeout_seconds=COMPARE_S))
