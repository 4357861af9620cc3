r"""Reference answers: read once, typed, patched where the data set is wrong, and kept as they were given."""

import re
from dataclasses import dataclass, field
from math import gcd, inf, isqrt

from delaysim.grading.extract import boxed
from delaysim.grading.latex import LONGEST, plain
from delaysim.grading.patches import Patch, patches
from delaysim.grading.rules import TYPES, kind_of, right_side
from delaysim.grading.scalar import literally
from delaysim.grading.shape import chain, items, region


class GoldError(ValueError):
    """A gold is empty or says nothing that can be compared."""


@dataclass(frozen=True)
class Gold:
    """A reference answer. `answer` is the raw text; `text` is what is compared."""

    id: str
    answer: str
    type: str
    text: str
    rel_tol: float = 0.0
    """Largest difference relative to the gold; 0 for exact."""
    tolerance: float = 0.0
    """Largest absolute difference; 0 for exact."""
    unit: str | None = None
    accepts: frozenset[str] = field(default=frozenset(), repr=False)
    """Spellings that are right letter by letter."""
    given: frozenset[str] = field(default=frozenset(), repr=False)
    """Expressions that stand in the problem: quoting one is no answer."""
    patched: str | None = None
    """Why the data set's answer was replaced."""


OUTSIDE = {
    "numerical": None, "expression": None, "tuple": None, "interval": "interval", "equation": "equation",
    "list": "multiset", "string": "text", "boolean": "text", "float": None, "percentage": None, "number": None,
    "multiple_choice": "choice", "mcq": "choice",
}  # fmt: skip
"""Names of types in data sets; None leaves the type to the answer's looks."""
COORDINATES = re.compile(
    r"ordered (?:pair|triple)|coordinates|\(\s*x\s*,\s*y\s*[,)]|-intercept|\bpoint\b", re.IGNORECASE
)
REALS = re.compile(r"interval|inequalit|range of|values of", re.IGNORECASE)


def make_gold(
    answer: str,
    *,
    id: str = "",
    problem: str = "",
    answer_type: str | None = None,
    multiple: bool = False,
    unit: str | None = None,
    tolerance: float | None = None,
    rel_tol: float = 0.0,
) -> Gold:
    """A gold from a row of a data set.

    `answer_type` is one of ours (`delaysim.grading.rules.TYPES`) or a data set's name for it; unknown names are left
    aside. `multiple` says that commas separate answers. Raises GoldError where the answer is empty or unreadable and no
    patch replaces it, ValueError on a tolerance below 0 or not finite.
    """
    for name, allowed in (("tolerance", tolerance or 0.0), ("rel_tol", rel_tol)):
        if not 0 <= allowed < inf:
            raise ValueError(f"{name}={allowed}: give a finite number, 0 or more")
    patch = patches().get(id) if id else None
    text = plain(_core(answer if patch is None or patch.answer is None else patch.answer))
    if not text:
        raise GoldError(f"{id or 'gold'}: the answer is empty")
    if len(text) > LONGEST:
        return Gold(id, answer, "literal", text)
    kind = _kind(text, problem, (patch and patch.type) or answer_type, multiple)
    unit = unit or (patch.unit if patch else None) or _set_apart(answer)
    _readable(id, text, kind)
    given = frozenset(_given(problem)) if problem else frozenset()
    why = patch.reason if patch else None
    accepts = _accepts(answer, patch)
    return Gold(id, answer, kind, text, rel_tol, tolerance or 0.0, unit, accepts, given, why)


def _set_apart(answer: str) -> str | None:
    """The unit of an answer such as `12 $m^{2}$`, a number in text and its unit in math."""
    match = re.fullmatch(r"\s*[-+0-9.,]+\s*\$\s*([A-Za-z]{1,3}\s*(?:\^\s*\{?\s*[23]\s*\}?)?)\s*\$\s*", _core(answer))
    return match[1] if match else None


def _core(answer: str) -> str:
    """The answer without a box or a `####` before it."""
    if "####" in answer:
        answer = answer.rpartition("####")[2]
    found = boxed(answer)
    return answer if found is None else found


def _accepts(answer: str, patch: Patch | None) -> frozenset[str]:
    if patch is not None and not patch.same_meaning:
        return frozenset()
    return frozenset({literally(plain(_core(answer)))})


def _kind(text: str, problem: str, named: str | None, multiple: bool) -> str:
    if named in TYPES:
        return str(named)
    kind = OUTSIDE.get((named or "").strip().lower().replace(" ", "_")) or kind_of(text)
    if multiple and kind not in ("set", "matrix") and len(items(text)) > 1:
        return "multiset"
    if kind == "interval" and region(text) is None:
        kind = kind_of(text)
    coordinates = COORDINATES.search(problem) and not REALS.search(problem)
    tuple_named = (named or "").lower() == "tuple" or coordinates
    if kind == "pair" and tuple_named:
        return "tuple"
    return "interval" if kind == "pair" and (named or "").lower() == "interval" else kind


SAYS_NOTHING = re.compile(r"[\s$.,;:?!'\"()\[\]{}\\|&%^_=+/*-]*")


def _readable(name: str, text: str, kind: str) -> None:
    """Raises GoldError where a gold is punctuation or its braces do not match."""
    braces = re.findall(r"\\.|[{}]", text)
    if kind != "text" and (SAYS_NOTHING.fullmatch(text) or braces.count("{") != braces.count("}")):
        if kind == "interval" and region(text) is not None:
            return
        raise GoldError(f"{name or 'gold'}: the answer {text!r} cannot be read")


SPAN = re.compile(r"\$\$?([^$]{3,400})\$\$?|\\\((.{3,400}?)\\\)|\\\[(.{3,400}?)\\\]", re.DOTALL)
WORKED = re.compile(r"\\(?:frac|sqrt|cdot|binom|sin|cos|tan|log|ln)|[+*/^]|(?<=.)-")
_ONE = r"(?:[0-9.]*(?:\\pi|\\sqrt\{(?P<root>[0-9]+)\}|[A-Za-z])?)"
DONE = re.compile(
    rf"-?(?:{_ONE}|(?P<top>[0-9]+)/(?P<low>[0-9]+)|\\frac\{{(?P<up>[0-9]+)\}}\{{(?P<down>[0-9]+)\}}|"
    + r"(?:X)/(?:X)|\\frac\{X\}\{X\})".replace("X", r"[0-9]*(?:\\pi|\\sqrt\{[0-9]+\}|[A-Za-z])?")
)


def _given(problem: str) -> set[str]:
    """Every expression in a problem with something left to work out, and what stands around its equals signs."""
    found: set[str] = set()
    for span in SPAN.findall(problem):
        text = plain(next(filter(None, span), ""))
        sides = {literally(side) for side in (text, *chain(text)[0]) if WORKED.search(side)}
        found.update(side for side in sides if not _worked_out(side))
    return found


def _worked_out(side: str) -> bool:
    """Whether a text is a number in lowest terms, a root without square factors, or a simple fraction of such."""
    match = DONE.fullmatch(side)
    if match is None:
        return False
    root = int(match["root"] or 1)
    over = int(match["top"] or match["up"] or 1), int(match["low"] or match["down"] or 1)
    return gcd(*over) == 1 and all(root % (k * k) for k in range(2, min(isqrt(root), 1000) + 1))


def quotes(gold: Gold, answer: str) -> bool:
    """Whether an answer only repeats an expression of the problem which is not the gold's own spelling."""
    repeated = {literally(answer), literally(right_side(answer))} & gold.given
    return bool(repeated) and literally(gold.text) not in repeated
