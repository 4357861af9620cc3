r"""Tokens of an expression as a sympy tree, exactly as written: nothing is computed, added up or reordered.

Precedence as people read LaTeX: a product without a sign binds before a division, `\sin 2x\cos y` is a product of two
functions, `\sin^2 x` is a square. In worker processes only.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import sympy

from delaysim.grading.expression import Expression, UnreadableError

CONSTANTS = {"e": sympy.E, "i": sympy.I, r"\pi": sympy.pi, r"\infty": sympy.oo}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    r"\sin": sympy.sin, r"\cos": sympy.cos, r"\tan": sympy.tan, r"\cot": sympy.cot, r"\sec": sympy.sec,
    r"\csc": sympy.csc, r"\arcsin": sympy.asin, r"\arccos": sympy.acos, r"\arctan": sympy.atan, r"\sinh": sympy.sinh,
    r"\cosh": sympy.cosh, r"\tanh": sympy.tanh, r"\ln": sympy.log, r"\log": sympy.log, r"\exp": sympy.exp,
    r"\lg": lambda x, **_: sympy.log(x, 10, evaluate=False),
}  # fmt: skip
MANY = {r"\max": sympy.Max, r"\min": sympy.Min, r"\gcd": sympy.gcd, r"\lcm": sympy.lcm}
CLOSED = {"(": ")", "[": "]", "{": "}", "|": "|", r"\lfloor": r"\rfloor", r"\lceil": r"\rceil"}
AROUND: dict[str, Callable[..., Any]] = {"|": sympy.Abs, r"\lfloor": sympy.floor, r"\lceil": sympy.ceiling}
STARTS = {*CLOSED, r"\frac", r"\sqrt", r"\binom", *FUNCTIONS, *MANY}


def tree(expression: Expression) -> Any:
    """The sympy expression. Raises UnreadableError where the tokens are no arithmetic."""
    reader = _Reader(expression.tokens)
    found = reader.sum()
    if reader.place != len(reader.tokens):
        raise UnreadableError(f"{reader.value!r} in the wrong place")
    return found


class _Reader:
    def __init__(self, tokens: tuple[tuple[str, str], ...]) -> None:
        self.tokens = tokens
        self.place = 0
        self.bars = 0

    @property
    def kind(self) -> str:
        return self.tokens[self.place][0] if self.place < len(self.tokens) else "end"

    @property
    def value(self) -> str:
        return self.tokens[self.place][1] if self.place < len(self.tokens) else ""

    def take(self, *values: str) -> bool:
        """Step over the next token where it is one of these."""
        found = self.kind == "sign" and self.value in values
        self.place += found
        return found

    def need(self, value: str) -> None:
        if not self.take(value):
            raise UnreadableError(f"{self.value!r} where {value!r} is needed")

    def sum(self) -> Any:
        terms = [self.product()]
        while self.value in ("+", "-") and self.kind == "sign":
            terms.append(self.product())
        return terms[0] if len(terms) == 1 else sympy.Add(*terms, evaluate=False)

    def product(self) -> Any:
        """A term with its sign."""
        negative = self.signs()
        found = self.factors()
        while self.kind == "sign" and self.value in (r"\cdot", "/"):
            divided = self.take("/") or not self.take(r"\cdot")
            negative ^= self.signs()
            other = self.factors()
            found = _times(found, _inverse(other) if divided else other)
        return _times(sympy.Integer(-1), found) if negative else found

    def signs(self) -> bool:
        negative = False
        while self.kind == "sign" and self.value in ("+", "-"):
            negative ^= self.value == "-"
            self.place += 1
        return negative

    def factors(self, within_function: bool = False) -> Any:
        """Factors side by side. The argument of a function ends before the next function or bracket."""
        found = self.power()
        while self.starts() and not (
            within_function and self.kind == "sign" and self.value not in (r"\frac", r"\sqrt")
        ):
            found = _times(found, self.power())
        return found

    def starts(self) -> bool:
        closes_bar = self.value == "|" and self.bars > 0
        return self.kind in ("number", "atom", "constant") or (self.value in STARTS and not closes_bar)

    def power(self) -> Any:
        base = self.primary()
        while self.take("!"):
            base = sympy.factorial(base, evaluate=False)
        return sympy.Pow(base, self.exponent(), evaluate=False) if self.take("^") else base

    def exponent(self) -> Any:
        negative = self.signs()
        found = self.primary()
        found = sympy.Pow(found, self.exponent(), evaluate=False) if self.take("^") else found
        return _times(sympy.Integer(-1), found) if negative else found

    def primary(self) -> Any:
        kind, value = self.kind, self.value
        self.place += 1
        if kind == "number":
            return sympy.Rational(*Fraction(value).as_integer_ratio())
        if kind == "atom":
            return sympy.Symbol(value)
        if value in CONSTANTS:
            return CONSTANTS[value]
        if value in CLOSED:
            return self.bracketed(value)
        return self.command(value)

    def bracketed(self, opens: str) -> Any:
        self.bars += opens == "|"
        bars, self.bars = self.bars, self.bars if opens == "|" else 0
        found = self.sum()
        self.bars = bars - (opens == "|")
        self.need(CLOSED[opens])
        return AROUND[opens](found, evaluate=False) if opens in AROUND else found

    def command(self, name: str) -> Any:
        if name == r"\frac":
            top = self.group()
            return _times(top, _inverse(self.group()))
        if name == r"\binom":
            top = self.group()
            return sympy.binomial(top, self.group(), evaluate=False)
        if name == r"\sqrt":
            index = self.bracketed("[") if self.take("[") else sympy.Integer(2)
            return sympy.Pow(self.group(), _inverse(index), evaluate=False)
        if name in MANY:
            return self.many(MANY[name])
        if name in FUNCTIONS:
            return self.function(FUNCTIONS[name])
        raise UnreadableError(f"{name!r} in the wrong place")

    def group(self) -> Any:
        self.need("{")
        return self.bracketed("{")

    def many(self, function: Callable[..., Any]) -> Any:
        self.need("(")
        found = [self.sum()]
        while self.take(","):
            found.append(self.sum())
        self.need(")")
        return function(*found)

    def function(self, function: Callable[..., Any]) -> Any:
        base = self.primary() if self.take("_") else None
        exponent = self.exponent() if self.take("^") else None
        bracketed = self.kind == "sign" and self.value in ("(", "[", "{", "|")
        argument = self.primary() if bracketed else self.factors(within_function=True)
        found = function(argument, evaluate=False)
        if base is not None:
            found = _times(found, _inverse(sympy.log(base, evaluate=False)))
        return found if exponent is None else sympy.Pow(found, exponent, evaluate=False)


def _times(one: Any, other: Any) -> Any:
    return sympy.Mul(*(one.args if one.is_Mul else (one,)), other, evaluate=False)


def _inverse(found: Any) -> Any:
    return sympy.Pow(found, sympy.Integer(-1), evaluate=False)
