"""The value of a sympy tree as it was written, at a point, in mpmath's current precision. In workers only.

sympy's own evaluation rewrites the tree first, and its printers misread unevaluated ones: 1/(1/x) as 1/1/x.
"""

from collections.abc import Callable
from functools import reduce
from operator import add, mul
from typing import Any

import mpmath
import sympy

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(mpmath, name)
        for name in ["exp", "sin", "cos", "tan", "cot", "sec", "csc", "asin", "acos", "atan"]
    },
    **{name: getattr(mpmath, name) for name in ["sinh", "cosh", "tanh", "factorial", "binomial", "gamma"]},
    "log": lambda x, base=None: mpmath.log(x) if base is None else mpmath.log(x) / mpmath.log(base),
    "floor": lambda x: mpmath.floor(x + _noise()),
    "ceiling": lambda x: mpmath.ceil(x - _noise()),
    "Abs": abs,
    "Max": max,
    "Min": min,
    "UnevaluatedExpr": lambda x: x,
}


def _noise() -> Any:
    """More than rounding leaves of a whole number."""
    return mpmath.mpf(10) ** -(mpmath.mp.dps * 2 // 3)


CONSTANTS = {sympy.pi: lambda: +mpmath.pi, sympy.E: lambda: +mpmath.e, sympy.I: lambda: mpmath.mpc(0, 1)}


def computed(node: Any, point: dict[Any, Any]) -> Any:
    """The value; `point` gives a sympy rational for every symbol. Raises ValueError or KeyError on what has none."""
    if node in CONSTANTS:
        return CONSTANTS[node]()
    if node.is_Symbol or node.is_Rational:
        rational = point[node] if node.is_Symbol else node
        return mpmath.mpf(rational.p) / rational.q
    if node.is_Pow:
        return _power(node, computed(node.base, point), point)
    values = [computed(part, point) for part in node.args]
    if node.is_Add or node.is_Mul:
        return reduce(add if node.is_Add else mul, values)
    function = FUNCTIONS.get(type(node).__name__)
    if function is None or not values:
        raise ValueError(f"no value of {type(node).__name__}")
    return function(*values)


def _power(node: Any, base: Any, point: dict[Any, Any]) -> Any:
    """A power; odd roots of negative numbers are real."""
    exponent = node.exp if node.exp.free_symbols else node.exp.doit()
    if exponent.is_Integer:
        return base ** int(exponent)
    if exponent.is_Rational and exponent.q % 2 and mpmath.im(base) == 0 and mpmath.re(base) < 0:
        root = (-mpmath.re(base)) ** (mpmath.mpf(exponent.p) / exponent.q)
        return -root if exponent.p % 2 else root
    return mpmath.power(base, computed(exponent, point))
