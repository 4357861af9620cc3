r"""The shape of a plain text: a list, a bracketed group, a chain of relations, a matrix, a set of real numbers."""

import re
from dataclasses import dataclass
from itertools import pairwise

from delaysim.grading.latex import closing, key, split, split_at
from delaysim.grading.numbers import number

RELATION = re.compile(
    r"\\le(?![A-Za-z])|\\ge(?![A-Za-z])|\\ne(?![A-Za-z])|\\approx(?![A-Za-z])|:=|[=<>]|\\in(?![A-Za-z])"
)
_AND = (
    r"(?:\\text\{(?:and|or)\}|(?<![A-Za-z\\])(?:and|or)(?![A-Za-z])|\\l?or(?![A-Za-z])"
    r"|\\(?:vee|wedge|land)(?![A-Za-z]))"
)
COMMA = re.compile(rf"[,;]\s*{_AND}?|\\text\{{[,;]\s*(?:and|or)?\}}|{_AND}")
GROUPED = re.compile(r"(?<![0-9,.])[0-9]{1,3}(?:,[0-9]{3})+(?![0-9]|,[0-9])")
MATRIX = re.compile(r"\\begin\{((?:[pbBvV]|small)?matrix|array)\}\s*(?:\{[lcr|\s]*\})?(.*?)\\end\{\1\}", re.DOTALL)
INFINITY = re.compile(r"[+-]?\s*\\infty")
SIGNS_AT_MOST = 3


@dataclass(frozen=True)
class Group:
    """What stands in brackets: `(1, 2]` opens with `(`, holds `1, 2` and closes with `]`."""

    opens: str
    inner: str
    closes: str


def group(text: str) -> Group | None:
    """The brackets around the whole of a text, None where there are none."""
    for opens in ("(", "[", r"\{"):
        if text.startswith(opens):
            end = closing(text, 0)
            if end == len(text) - 1:
                closes = r"\}" if text.endswith(r"\}") else text[-1]
                return Group(opens, text[len(opens) : len(text) - len(closes)].strip(), closes)
    return None


def items(text: str, count: int | None = None) -> list[str]:
    r"""The items of a list, `\pm` written out. Commas group thousands only where that gives `count` items."""
    raw = _items(text)
    if count is not None and len(raw) != count:
        joined = _items(ungrouped(text))
        return joined if len(joined) == count else raw
    return raw


def _items(text: str) -> list[str]:
    return [item for part in split(text, COMMA) for item in ([part] if part.startswith(r"\{") else signs(part))]


def ungrouped(text: str) -> str:
    """Numbers without the commas between their thousands."""
    return GROUPED.sub(lambda match: match[0].replace(",", ""), text).replace("{,}", "")


def signs(text: str) -> list[str]:
    r"""`1\pm2` as `1+2` and `1-2`; each `\pm` is free, each `\mp` opposes the first."""
    count = text.count(r"\pm")
    if not 1 <= count <= SIGNS_AT_MOST:
        return [text]
    found = []
    for choice in range(2**count):
        chosen = ["+-"[choice >> place & 1] for place in range(count)]
        parts = re.split(r"\\pm(?![A-Za-z])\s*", text)
        written = parts[0] + "".join(sign + part for sign, part in zip(chosen, parts[1:], strict=False))
        opposite = "-" if chosen[0] == "+" else "+"
        found.append(re.sub(r"\\mp(?![A-Za-z])\s*", lambda _, to=opposite: to, written).removeprefix("+"))
    return found


def chain(text: str) -> tuple[list[str], list[str]]:
    r"""The sides of a chain of relations and the relations: `a<x\le b` is [a, x, b] and [<, \le]."""
    sides, relations = split_at(text, RELATION)
    return sides, ["=" if relation in (r"\approx", ":=") else relation for relation in relations]


def matrix(text: str) -> list[list[str]] | None:
    """The entries of a matrix by rows; None for anything else."""
    whole = group(text.strip())
    match = MATRIX.fullmatch(whole.inner if whole and whole.opens in ("(", "[") else text.strip())
    if match is None:
        return None
    rows = [row for row in re.split(r"\\\\(?:\[[^\]]*\])?", match[2]) if row.strip()]
    return [[entry.strip() for entry in row.split("&")] for row in rows]


ARGUMENTS = r"(?:\s*\([^()]*(?:\([^()]*\)[^()]*)*\))"
SUBSCRIPT = r"(?:\s*_\s*(?:\{[^{}]*(?:\{[^{}]*\})?[^{}]*\}|[A-Za-z0-9]|\\[A-Za-z]+))?"
_HEAD = r"(?:[A-Za-z]|\\(?!frac|sqrt|sin|cos|tan|log|ln|pi|text|le|ge|ne|in)[A-Za-z]+(?:\{[^{}]*\})?|\\text\{[^{}]*\})"
NAME = re.compile(
    rf"(?:m\s*)?(?:{_HEAD}{SUBSCRIPT}'*(?:\s*\^\s*\{{?\s*-1\s*\}}?(?=\s*\())?{ARGUMENTS}?"
    r"|\\(?:angle|triangle)\s*(?:[A-Z](?:_\{?[0-9]\}?)?\s*)+|\\(?:overline|overrightarrow|vec|widehat)\s*\{[^{}]*\}"
    r"|\|?\s*(?:[A-Z](?:_\{?[0-9]\}?)?'*\s*){2,4}\|?"
    r"|[A-Za-z]{3,}(?:\s+[A-Za-z]+){0,5})"
)


def is_name(text: str) -> bool:
    r"""Whether a text only names something: `x`, `f(x)`, `m_{max}`, `AB`, `\angle ABC`, `the area`."""
    return len(text) <= 80 and bool(NAME.fullmatch(text.strip()))


def variable(text: str) -> bool:
    """Whether a text is one letter, with a subscript or not."""
    return bool(re.fullmatch(rf"(?:[A-Za-z]|\\(?!infty|pi|emptyset)[A-Za-z]+){SUBSCRIPT}", text.strip()))


# Sets of real numbers.


@dataclass(frozen=True)
class Piece:
    """An interval with texts for ends; a point is closed at both."""

    low: str
    high: str
    low_closed: bool
    high_closed: bool


@dataclass(frozen=True)
class Region:
    """Pieces in any order, and the variable they are of, where one is named."""

    pieces: tuple[Piece, ...]
    variable: str | None = None


CUP = re.compile(
    r"\\cup(?![A-Za-z])|\\text\{(?:or|and)\}|(?<![A-Za-z\\])or(?![A-Za-z])|\\lor(?![A-Za-z])|\\vee(?![A-Za-z])|U(?=\s*[(\[])"
)
BAR = re.compile(r"\||\\mid(?![A-Za-z])|:")
REALS = re.compile(r"\\mathbb\s*\{?\s*R\s*\}?|\\text\{(?:all )?real numbers\}|(?:all )?real numbers|\\R")
ALL = Piece(r"-\infty", r"\infty", False, False)


def region(text: str) -> Region | None:
    r"""A set of reals in any notation: intervals, unions, inequalities, `x\in`, set builders; else None."""
    text = text.strip()
    if REALS.fullmatch(text):
        return Region((ALL,))
    if key(text) in (r"\emptyset", r"\{\}"):
        return Region(())
    return _without(text) or _member(text) or _builder(text) or _union(text)


def _without(text: str) -> Region | None:
    r"""`\mathbb{R}\setminus\{0,1\}`."""
    whole, _, taken = text.partition(r"\setminus")
    inner = group(taken.strip())
    if not taken or not REALS.fullmatch(whole.strip()) or inner is None or inner.opens != r"\{":
        return None
    return _holes(items(inner.inner), None)


def _holes(points: list[str], name: str | None) -> Region | None:
    """All reals but a few numbers."""
    values = [number(point) for point in points]
    if None in values:
        return None
    ordered = [point for _, point in sorted(zip(values, points, strict=True))]
    ends = [r"-\infty", *ordered, r"\infty"]
    return Region(tuple(Piece(a, b, False, False) for a, b in pairwise(ends)), name)


def _member(text: str) -> Region | None:
    sides, relations = chain(text)
    if relations != [r"\in"] or not is_name(sides[0]):
        return None
    inside = region(sides[1])
    return inside and Region(inside.pieces, key(sides[0]))


def _builder(text: str) -> Region | None:
    r"""`\{x \mid -2\le x<1\}`."""
    braces = group(text)
    if braces is None or braces.opens != r"\{":
        return None
    parts = split(braces.inner, BAR)
    if len(parts) < 2:
        return None
    name = split(parts[0], re.compile(r"\\in(?![A-Za-z])"))[0]
    rest = braces.inner[len(parts[0]) :].lstrip()
    condition = BAR.sub("", rest, count=1)
    conditions = [c for c in split(condition, re.compile(",")) if not re.fullmatch(r".*\\in\s*\\mathbb\s*\{?R\}?", c)]
    if not variable(name) or len(conditions) != 1:
        return None
    inside = _union(conditions[0])
    return Region(inside.pieces, None) if inside and inside.variable == key(name) else None


def _union(text: str) -> Region | None:
    found = [_piece(part) for part in split(text, CUP)]
    if any(part is None for part in found):
        return None
    names = {part.variable for part in found if part}
    pieces = tuple(piece for part in found if part for piece in part.pieces)
    return Region(pieces, names.pop()) if len(names) == 1 else None


def _piece(text: str) -> Region | None:
    whole = group(text)
    if whole is None:
        return _inequality(text)
    ends = split(whole.inner, re.compile("[,;]"))
    if whole.opens == r"\{":
        if len(split(whole.inner, BAR)) > 1:
            return None
        points = items(whole.inner)
        return Region(tuple(Piece(point, point, True, True) for point in points)) if whole.inner else Region(())
    if len(ends) != 2 or not all(ends):
        return None
    return Region((_ends(ends[0], ends[1], whole.opens == "[", whole.closes == "]"),))


def _ends(low: str, high: str, low_closed: bool, high_closed: bool) -> Piece:
    high = re.sub(r"^\+\s*(?=\\infty)", "", high)
    low = re.sub(r"^-\s*(?=\\infty)", "-", low)
    return Piece(low, high, low_closed and not INFINITY.fullmatch(low), high_closed and not INFINITY.fullmatch(high))


def _inequality(text: str) -> Region | None:
    r"""`a<x\le b`, `3>x`, `x=1`, `x\ne 0`, with one variable on one side."""
    sides, relations = chain(text)
    if set(relations) in ({">"}, {r"\ge"}, {">", r"\ge"}):
        sides, relations = sides[::-1], [{">": "<", r"\ge": r"\le"}[r] for r in relations[::-1]]
    if len(sides) == 2 and (around := [re.fullmatch(r"\|([^|]*)\|", side) for side in sides]) != [None, None]:
        return _absolute(sides, relations[0], around[0] is not None)
    places = [place for place, side in enumerate(sides) if variable(side)]
    if len(places) != 1 or not all(sides) or len(sides) > 3:
        return None
    name, place = key(sides[places[0]]), places[0]
    if relations == ["="]:
        return Region((Piece(sides[1 - place], sides[1 - place], True, True),), name)
    if relations == [r"\ne"]:
        return _holes(items(sides[1 - place]), name)
    if not relations or not set(relations) <= {"<", r"\le"} or (len(sides) == 3 and place != 1):
        return None
    low, high = (sides[place - 1] if place else None), (sides[place + 1] if place + 1 < len(sides) else None)
    closed = [relation == r"\le" for relation in relations]
    piece = _ends(low or r"-\infty", high or r"\infty", closed[0] and low is not None, closed[-1] and high is not None)
    return Region((piece,), name)


def _absolute(sides: list[str], relation: str, on_left: bool) -> Region | None:
    r"""`|x|<3` and `|x|\ge 3`."""
    inner, bound = (side.strip() for side in (sides if on_left else sides[::-1]))
    name, closed = inner.strip("|"), relation == r"\le"
    if relation not in ("<", r"\le") or not variable(name):
        return None
    if on_left:
        return Region((Piece(f"-({bound})", bound, closed, closed),), key(name))
    outside = Piece(r"-\infty", f"-({bound})", False, closed), Piece(bound, r"\infty", closed, False)
    return Region(outside, key(name))
