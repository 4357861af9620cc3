r"""Whether two scalars are equal: exactly where both are numbers, else by a check that knows algebra.

Units, percent signs and degrees are settled here; letters must be the same ones, case kept, on both sides.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from delaysim.grading.expression import atoms
from delaysim.grading.latex import key
from delaysim.grading.numbers import number
from delaysim.grading.shape import chain, group, is_name, items, ungrouped
from delaysim.grading.units import Quantity, measured, ratio

Equation = tuple[str, str]
LABEL = re.compile(r"(?:\\text\{\s*\(?[A-J]\)?\s*[.:]?\s*\}|\([A-J]\))\s*(?P<rest>.+)")
PI = r"\pi"


class UndecidedError(Exception):
    """Only algebra can tell."""


class Check(Protocol):
    """What decides when two texts are not plain numbers."""

    @property
    def rel_tol(self) -> float:
        """Largest difference relative to the gold; 0 for exact."""
        ...

    @property
    def tolerance(self) -> float:
        """Largest absolute difference; 0 for exact."""
        ...

    def equal(self, gold: str, answer: str) -> bool:
        """Whether two readable expressions in the same symbols are equal. Raises UndecidedError."""
        ...

    def equivalent(self, gold: Equation, answer: Equation) -> bool:
        """Whether two equations in the same symbols say the same. Raises UndecidedError."""
        ...

    def foreign(self, gold: str, answer: str) -> bool:
        """Whether two formulas that hold more than arithmetic are equal. Raises UndecidedError."""
        ...


@dataclass(frozen=True)
class Exact:
    """Knows no algebra."""

    rel_tol: float = 0.0
    tolerance: float = 0.0

    def equal(self, gold: str, answer: str) -> bool:
        raise UndecidedError

    def equivalent(self, gold: Equation, answer: Equation) -> bool:
        raise UndecidedError

    def foreign(self, gold: str, answer: str) -> bool:
        raise UndecidedError


def same_value(gold: str, answer: str, check: Check, unit: str | None = None) -> bool:
    """Whether an answer, a name and an equals sign before it or not, is the scalar `gold`. Raises UndecidedError."""
    if literally(gold) == literally(answer):
        return True
    answer = _unlabelled(gold, answer)
    if len(items(answer, 1)) != 1:
        return False
    values = values_of(answer)
    return bool(values) and all(same_scalar(gold, value, check, unit) for value in values)


def literally(text: str) -> str:
    """The letters of a text, thousands and a leading plus aside."""
    return key(ungrouped(text)).removeprefix("+")


def _unlabelled(gold: str, answer: str) -> str:
    """`(C) 12` for a gold that is a number: what stands after the letter of the choice."""
    label = LABEL.fullmatch(answer)
    return label["rest"] if label and number(gold) is not None and number(label["rest"]) is not None else answer


def values_of(text: str) -> list[str]:
    """What a chain such as `x = 2+3 = 5` or `5 = x` says of its name: 2+3 and 5. Empty for any other relation."""
    sides, relations = chain(text)
    if set(relations) - {"="} or not all(sides):
        return []
    while len(sides) > 1 and is_name(sides[0]):
        sides = sides[1:]
    return sides[:-1] if len(sides) > 1 and is_name(sides[-1]) else sides


def same_scalar(gold: str, answer: str, check: Check, unit: str | None = None) -> bool:
    """Whether two scalars are equal, units considered. Raises UndecidedError."""
    if literally(gold) == literally(answer):
        return True
    if group(answer) and group(answer).opens == r"\{":  # type: ignore[union-attr]
        return False
    gold, answer = ungrouped(gold), ungrouped(answer)
    one = measured(gold, unit)
    other = measured(answer, unit or _letter_free(one.core))
    return any(_same(g, a, check) for g, a in _readings(one, other, unit))


def _letter_free(core: str) -> str | None:
    """Where the gold has no letters, a trailing `m^2` is a unit."""
    return "m^2" if not atoms(core) else None


def _readings(gold: Quantity, answer: Quantity, unit: str | None) -> list[tuple[str, str]]:
    """The pairs of texts of which one must agree for the quantities to be equal."""
    kinds = tuple(q.unit.dimension[0][0] if q.unit else None for q in (gold, answer))
    by_hundred = rf"\frac{{{answer.core}}}{{100}}", rf"100\cdot ({answer.core})"
    turned = rf"\frac{{180}}{{\pi}}\cdot ({answer.core})"
    match kinds:
        case ("percent", "percent"):
            return [(gold.core, answer.core)]
        case ("percent", None):
            return [(gold.core, answer.core), (gold.core, by_hundred[1])]
        case (_, "percent"):
            return [(gold.core, answer.core), (gold.core, by_hundred[0])]
        case ("degree", "radian"):
            return [(gold.core, turned)]
        case ("degree", None) if PI in answer.core and PI not in gold.core:
            return [(gold.core, turned)]
        case (None, "degree") if PI in gold.core and PI not in answer.core:
            return [(gold.core, rf"\frac{{\pi}}{{180}}\cdot ({answer.core})")]
    scale = ratio(gold.unit, answer.unit)
    if scale is None:
        return []
    return [(gold.core, answer.core if scale == 1 else _scaled(answer.core, scale))]


def _scaled(core: str, scale: Fraction) -> str:
    return rf"\frac{{{scale.numerator}}}{{{scale.denominator}}}\cdot ({core})"


FACTOR = re.compile(r"(?:\\frac\{(?P<top>[0-9]+)\}\{(?P<bottom>[0-9]+)\}|(?P<whole>[0-9]+))\\cdot \((?P<core>.*)\)")
HUNDREDTH = re.compile(r"\\frac\{(?P<core>.*)\}\{100\}")


def value(text: str) -> Fraction | None:
    """The exact number of a text, with the factors that units bring."""
    plain = number(text)
    if plain is not None:
        return plain
    hundredth, factor = HUNDREDTH.fullmatch(text), FACTOR.fullmatch(text)
    inner = number((hundredth or factor)["core"]) if hundredth or factor else None  # type: ignore[index]
    if inner is None or factor is None:
        return None if inner is None else inner / 100
    return inner * Fraction(int(factor["top"] or factor["whole"]), int(factor["bottom"] or 1))


def _same(gold: str, answer: str, check: Check) -> bool:
    if literally(gold) == literally(answer):
        return True
    one, other = value(gold), value(answer)
    if one is not None and other is not None:
        return close(one, other, check)
    ours, theirs = atoms(gold), atoms(answer)
    if ours is None and theirs is None and FOREIGN.search(gold) and FOREIGN.search(answer):
        return _letters(gold) == _letters(answer) and check.foreign(gold, answer)
    if ours is None or theirs is None or ours != theirs:
        return False
    return check.equal(gold, answer)


FOREIGN = re.compile(r"\\(?:sum|prod|i?int|lim)(?![A-Za-z])")


def _letters(text: str) -> set[str]:
    return set(re.findall(r"\\[A-Za-z]+|[A-Za-z]", text)) - {r"\cdot", r"\frac"}


def close(gold: Fraction, answer: Fraction, check: Check) -> bool:
    """Whether two numbers agree within the tolerances, exactly where there are none."""
    allowed = max(Fraction(check.rel_tol) * abs(gold), Fraction(check.tolerance))
    return abs(gold - answer) <= allowed


def same_equation(gold: str, answer: str, check: Check, unit: str | None = None) -> bool:
    r"""Whether two equations say the same; for `y=...` what stands on its right is enough. Raises UndecidedError."""
    if literally(gold) == literally(answer):
        return True
    sides = chain(gold)[0]
    theirs, others = chain(answer)
    if len(items(answer, 1)) != 1 or set(others) - {"="} or not all(theirs):
        return False
    named = len(sides) == 2 and is_name(sides[0])
    if not others:
        return named and same_value(sides[1], answer, check, unit)
    if named and key(theirs[0]) == key(sides[0]):
        return all(same_scalar(sides[1], side, check, unit) for side in theirs[1:])
    return _equivalent((sides[0], sides[-1]), theirs, check)


def _equivalent(gold: Equation, answer: list[str], check: Check) -> bool:
    ours = [atoms(side) for side in gold]
    theirs = [atoms(side) for side in answer]
    if len(answer) != 2 or None in ours or None in theirs:
        return False
    if frozenset().union(*ours) != frozenset().union(*theirs):  # type: ignore[arg-type]
        return False
    return check.equivalent(gold, (answer[0], answer[1]))
