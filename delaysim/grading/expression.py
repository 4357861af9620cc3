r"""One scalar in LaTeX as tokens: its symbols, case kept, and a spelling in which each symbol is plain.

Every symbol, with its subscript, accent, prime or argument, is one atom; what is left is arithmetic. (Math-Verify's
parser lower-cases letters, reads `f(0)` as a product with 0, `52_8` as 52 and `(2)(3)` as 5, and takes seconds for a
dozen nested parentheses.)
"""

import re
from dataclasses import dataclass

from delaysim.grading.latex import FUNCTIONS, GREEK, closing, key

DEEPEST = 12
"""Nested brackets at most."""
LONGEST_TERM = 1200
LONGEST_NUMBER = 2000


class UnreadableError(ValueError):
    """The text is no arithmetic expression."""


@dataclass(frozen=True)
class Expression:
    """Tokens of a scalar; an atom stands as `("atom", name)`."""

    tokens: tuple[tuple[str, str], ...]

    @property
    def atoms(self) -> frozenset[str]:
        """Names of the symbols, case kept; pi, e and i are numbers."""
        return frozenset(value for kind, value in self.tokens if kind == "atom")


KNOWN = {f"\\{name}" for name in FUNCTIONS} | {
    r"\frac", r"\sqrt", r"\binom", r"\cdot", r"\pi", r"\infty", r"\lfloor", r"\rfloor", r"\lceil", r"\rceil", r"\lg",
}  # fmt: skip
CONSTANTS = {"e", "i", r"\pi", r"\infty"}
_LETTER = r"(?:[A-Za-z]|\\(?:" + "|".join(sorted(GREEK, key=len, reverse=True)) + r"|hbar|ell|mho)(?![A-Za-z]))"
_ACCENT = r"\\(?:dot|ddot|vec|bar|hat|tilde|overline|overrightarrow|widehat|mathbb|mathcal|text)\s*\{[^{}]*\}"
_BELOW = r"(?:\s*_\s*(?:\{(?:[^{}]|\{[^{}]*\})*\}|[A-Za-z0-9]|\\[A-Za-z]+))"
_ARGUMENT = r"(?:\s*\(\s*(?:[tnxzs0]|\\theta)\s*\))"
_D = r"(?:d|\\partial|\\text\{d\})"
DERIVATIVE = re.compile(
    rf"\\frac\s*\{{\s*{_D}\s*(?:\^\s*\{{?[2-9]\}}?)?\s*{_LETTER}{_BELOW}?\s*\}}"
    rf"\s*\{{\s*{_D}\s*{_LETTER}\s*(?:\^\s*\{{?[2-9]\}}?)?\s*\}}"
)
ATOM = re.compile(rf"(?:{_ACCENT}{_BELOW}?|{_LETTER}{_BELOW}|{_LETTER}(?=\s*'|{_ARGUMENT}))'*{_ARGUMENT}?|{_LETTER}")
NUMBER = re.compile(r"[0-9]+(?:\{,\}[0-9]{3})*(?:\.[0-9]*)?|\.[0-9]+")
COMBINATIONS = re.compile(
    r"(?:\{?\}?\s*)?\b(?:\\text\{)?C\}?\s*(?:_\s*\{?(?P<n>[0-9]+)\}?\s*\^\s*\{?(?P<k>[0-9]+)\}?|\^\s*\{?(?P<k2>[0-9]+)\}?\s*_\s*\{?(?P<n2>[0-9]+)\}?)"
)
BEFORE = re.compile(
    r"(?<![0-9A-Za-z}])(?:\{\}\s*)?[_^]\s*(?:\{(?P<n>[0-9]+)\}|(?P<n2>[0-9]))\s*(?:\\text\{)?C\}?\s*_\s*(?:\{(?P<k>[0-9]+)\}|(?P<k2>[0-9]))"
)
DEGREES = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*°")
FACTORIAL_POWER = re.compile(r"(?<![A-Za-z\\])([0-9]+|[A-Za-z])\s*!\s*\^")
INVERSE = re.compile(r"\\(sin|cos|tan)\s*\^\s*\{?\s*-\s*1\s*\}?(?![0-9])")
MIXED = re.compile(r"(?<![0-9A-Za-z.)}!^_])([0-9]+)\s*\\frac\{([0-9]+)\}\{([0-9]+)\}")
REDUNDANT = re.compile(r"\(\s*\(([^()]*)\)\s*\)")
BRACKETS = {"(": 1, "[": 1, "{": 1, r"\{": 1, r"\lfloor": 1, r"\lceil": 1}


def read(text: str) -> Expression:
    """The expression of a plain text. Raises UnreadableError on anything but arithmetic with symbols."""
    if not text or (len(text) > LONGEST_TERM and not NUMBER.fullmatch(text.removeprefix("-"))):
        raise UnreadableError(f"{len(text)} characters")
    return Expression(_tokens(_prepared(text)))


def atoms(text: str) -> frozenset[str] | None:
    """The symbols of a text, None where it is unreadable."""
    try:
        return read(text).atoms
    except UnreadableError:
        return None


def _prepared(text: str) -> str:
    for counted in (COMBINATIONS, BEFORE):
        text = counted.sub(lambda m: rf"\binom{{{m['n'] or m['n2']}}}{{{m['k'] or m['k2']}}}", text)
    text = INVERSE.sub(lambda match: rf"\arc{match[1]} ", MIXED.sub(_mixed, text))
    text = FACTORIAL_POWER.sub(r"(\1!)^", text)
    text = DEGREES.sub(r"(\\frac{\1\\cdot \\pi}{180})", text)
    text = re.sub(r"(?<![0-9A-Za-z)}])([0-9.]+(?:e[+-]?[0-9]+))(?![0-9A-Za-z])", _scientific, text)
    for _ in range(DEEPEST):
        text = REDUNDANT.sub(r"(\1)", text)
    return _exponentials(text)


def _mixed(match: re.Match[str]) -> str:
    """A whole number before a fraction below 1 is added to it."""
    whole, top, bottom = match.groups()
    return rf"({whole}+\frac{{{top}}}{{{bottom}}})" if int(top) < int(bottom) else match[0]


def _scientific(match: re.Match[str]) -> str:
    mantissa, _, power = match[1].partition("e")
    return rf"({mantissa}\cdot 10^{{{power.removeprefix('+')}}})"


def _exponentials(text: str) -> str:
    r"""`\exp{x}` and `\exp(x)` as powers of e."""
    start = 0
    while match := re.compile(r"\\exp\s*(?=[({])").search(text, start):
        end = closing(text, match.end())
        if end is None:
            return text
        text = f"{text[: match.start()]}e^{{{text[match.end() + 1 : end]}}}{text[end + 1 :]}"
        start = match.start() + 1
    return text


def _tokens(text: str) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    place = depth = 0
    while place < len(text):
        if text[place].isspace():
            place += 1
            continue
        kind, value, end = _token(text, place)
        depth += (value in BRACKETS) - (value in (")", "]", "}", r"\}", r"\rfloor", r"\rceil"))
        if not 0 <= depth <= DEEPEST:
            raise UnreadableError("brackets")
        _side_by_side(found, kind, value, depth)
        found.append((kind, value))
        place = end
    if depth or not any(kind in ("number", "atom", "constant") for kind, _ in found):
        raise UnreadableError("brackets")
    return tuple(found)


def _side_by_side(found: list[tuple[str, str]], kind: str, value: str, depth: int) -> None:
    """Raises UnreadableError on what has no meaning after the tokens before it."""
    before = [token for _, token in found[-2:]]
    if found and kind == found[-1][0] == "number" and before[0] != "_":
        raise UnreadableError("two numbers side by side")
    if value == "_" and before[-1:] != [r"\log"]:
        raise UnreadableError("a subscript of no symbol")
    if value == "," and not (depth and MANY & {token for _, token in found}):
        raise UnreadableError("a list")


MANY = {r"\max", r"\min", r"\gcd", r"\lcm"}


def _token(text: str, place: int) -> tuple[str, str, int]:
    number = NUMBER.match(text, place)
    if number:
        digits = number[0].replace("{,}", "").rstrip(".")
        if len(digits) > LONGEST_NUMBER:
            raise UnreadableError("a number of many digits")
        return "number", "0" + digits if digits.startswith(".") else digits, number.end()
    derivative = DERIVATIVE.match(text, place)
    if derivative:
        return "atom", key(derivative[0]), derivative.end()
    atom = ATOM.match(text, place)
    if atom and atom[0].strip() in CONSTANTS:
        return "constant", atom[0], atom.end()
    if atom:
        return "atom", key(atom[0]), atom.end()
    return _sign(text, place)


SIGN = re.compile(r"\\[A-Za-z]+|[-+/^_(){}\[\]|!,]|\\[{}]")


def _sign(text: str, place: int) -> tuple[str, str, int]:
    sign = SIGN.match(text, place)
    if sign is None or (sign[0].startswith("\\") and sign[0] not in KNOWN):
        raise UnreadableError(f"{text[place : place + 12]!r}")
    kind = "constant" if sign[0] in CONSTANTS else "sign"
    return kind, sign[0], sign.end()
