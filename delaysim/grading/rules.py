"""Whether an answer is right, by the type of its gold. Every rule is `rule(gold, answer, check, unit) -> bool`."""

import re
from collections.abc import Callable
from itertools import chain as joined
from typing import TypeVar

from delaysim.grading import special
from delaysim.grading.latex import key, split
from delaysim.grading.scalar import Check, literally, same_equation, same_scalar, same_value
from delaysim.grading.shape import Piece, chain, group, is_name, items, matrix, region

T = TypeVar("T")
Rule = Callable[[str, str, Check, str | None], bool]
TYPES = (
    "integer", "decimal", "sci", "fraction", "expr", "equation", "interval", "tuple", "pair", "set", "multiset",
    "choice", "text", "base_n", "time", "matrix", "literal",
)  # fmt: skip


def same(kind: str, gold: str, answer: str, check: Check, unit: str | None = None) -> bool:
    """Whether a plain answer is right for a plain gold of a type. Raises UndecidedError where only algebra can tell."""
    return RULES.get(kind, same_value)(gold, answer, check, unit)


def kind_of(text: str) -> str:
    """The type of a plain text, from what it looks like."""
    if special.is_clock(text):
        return "time"
    if special.based(text):
        return "base_n"
    if matrix(text) is not None:
        return "matrix"
    if re.fullmatch(r"(?:\\text\{)?\(?[A-K]\)?\}?", text):
        return "choice"
    return "text" if special.is_words(text) else _mathematical(text)


def _mathematical(text: str) -> str:
    bracketed = _bracketed(text)
    if bracketed:
        return bracketed
    if chain(text)[1] == ["="] and right_side(text) != text:
        return kind_of(right_side(text))
    if re.search(r"[<>]|\\[lg]e(?![A-Za-z])", text) and region(text):
        return "interval"
    if len(items(text, 1)) > 1:
        return "multiset"
    _, relations = chain(text)
    if relations:
        return "equation" if set(relations) == {"="} else "interval" if region(text) else "literal"
    if region(text):
        return "interval"
    return _numeric(text)


def _bracketed(text: str) -> str | None:
    """The type of a text in brackets; None where it is not in brackets."""
    whole = group(text)
    if whole is None:
        return None
    if whole.opens == r"\{":
        return "interval" if region(text) and not _finite(text) else "set"
    count = len(split(whole.inner, re.compile("[,;]")))
    if count == 1:
        return "expr" if whole.closes != "]" and whole.opens != "[" else None
    if count != 2:
        return "tuple"
    return "pair" if whole.opens + whole.closes == "()" and r"\infty" not in whole.inner else "interval"


def _finite(text: str) -> bool:
    found = region(text)
    return found is not None and all(piece.low == piece.high for piece in found.pieces)


SCI = re.compile(r"[-+]?[0-9.]+\s*(?:e[-+]?[0-9]+|\\cdot\s*10\s*\^\s*(?:\{[-+]?[0-9]+\}|[0-9]))")


def _numeric(text: str) -> str:
    bare = literally(text)
    if re.fullmatch(r"[-+]?[0-9]+", bare):
        return "integer"
    if re.fullmatch(r"[-+]?[0-9]*\.[0-9]*", bare):
        return "decimal"
    if SCI.fullmatch(text):
        return "sci"
    return "fraction" if re.fullmatch(r"[-+]?[0-9]*(?:\\frac\{-?[0-9]+\}\{-?[0-9]+\}|[0-9]/[0-9]+)", bare) else "expr"


def literal(gold: str, answer: str, check: Check, unit: str | None = None) -> bool:
    """Letter by letter, or the same chain of inequalities read from either end."""
    return literally(gold) == literally(answer) or _upward(gold) == _upward(answer)


def _upward(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    sides, relations = chain(text)
    if set(relations) <= {">", r"\ge", "="}:
        sides, relations = sides[::-1], [{">": "<", r"\ge": r"\le"}.get(r, r) for r in relations[::-1]]
    return tuple(map(key, sides)), tuple(relations)


def right_side(text: str) -> str:
    r"""What `P = (1,2)` or `A\cap B = \{1\}` says of its left side."""
    sides, relations = chain(text)
    bracketed = relations == ["="] and (group(sides[1]) or matrix(sides[1]))
    if bracketed:
        return sides[1]
    point = re.fullmatch(r"(?:\\text\{)?[A-Z]'?\}?\s*(\(.*\))", text)
    return point[1] if point else text


def tuple_(gold: str, answer: str, check: Check, unit: str | None = None) -> bool:
    """The same entries in the same order; a column of a matrix is a tuple too."""
    ours, theirs = _entries(right_side(gold)), _entries(right_side(answer), gold)
    if ours is None or theirs is None or len(ours) != len(theirs):
        return False
    return all(any_kind(g, a, check, unit) for g, a in zip(ours, theirs, strict=True))


def _entries(text: str, like: str | None = None) -> list[str] | None:
    rows = matrix(text)
    if rows is not None:
        return [row[0] for row in rows] if all(len(row) == 1 for row in rows) else rows[0] if len(rows) == 1 else None
    whole = group(text)
    if whole is None or whole.opens + whole.closes not in ("()", "[]"):
        return None
    if like is not None and group(right_side(like)) and whole.opens != group(right_side(like)).opens:  # type: ignore[union-attr]
        return None
    return split(whole.inner, re.compile("[,;]"))


def any_kind(gold: str, answer: str, check: Check, unit: str | None = None) -> bool:
    """Compare one entry of a list or tuple, by what it looks like."""
    kind = kind_of(gold)
    return same("expr" if kind == "choice" else kind, gold, answer, check, unit)


def pair(gold: str, answer: str, check: Check, unit: str | None = None) -> bool:
    """`(0, 3)`, a point or an open interval: as a point, or as an interval where the answer writes an inequality."""
    written = region(answer)
    inequality = written is not None and group(answer) is None
    return interval(gold, answer, check, unit) if inequality else tuple_(gold, answer, check, unit)


def interval(gold: str, answer: str, check: Check, unit: str | None = None) -> bool:
    """The same pieces with the same ends, however they are written."""
    ours, theirs = region(_set_side(gold)), region(_set_side(answer))
    if literally(gold) == literally(answer):
        return True
    if ours is None or theirs is None or len(ours.pieces) != len(theirs.pieces):
        return False
    if ours.variable and theirs.variable and ours.variable != theirs.variable:
        return False
    return matched(list(ours.pieces), list(theirs.pieces), lambda g, a: _same_piece(g, a, check))


def _set_side(text: str) -> str:
    sides, relations = chain(text)
    named = relations == ["="] and region(sides[1]) and not is_number_side(sides[1])
    return sides[1] if named else text


def is_number_side(text: str) -> bool:
    """Whether a side of `x = 3` is no set."""
    return group(text) is None and r"\cup" not in text and r"\mathbb" not in text


def _same_piece(gold: Piece, answer: Piece, check: Check) -> bool:
    if (gold.low_closed, gold.high_closed) != (answer.low_closed, answer.high_closed):
        return False
    return same_scalar(gold.low, answer.low, check) and same_scalar(gold.high, answer.high, check)


def set_(gold: str, answer: str, check: Check, unit: str | None = None) -> bool:
    """The same elements, each once, in braces or, where there are two or more, as a list."""
    gold, answer = right_side(gold), right_side(_listed(answer))
    if image(gold) or literally(gold) == literally(answer):
        return literally(gold) == literally(answer) or image(gold) == image(answer)
    ours, theirs = group(gold), group(answer)
    if ours is None:
        return False
    single = len(items(ours.inner)) == 1 and group(ours.inner) is None
    if single and (theirs is None or theirs.opens != r"\{"):
        return False
    return multiset(gold, answer, check, unit)


IMAGE = re.compile(
    r"\\\{(?:(?P<x>[A-Za-z])(?:\|| ?\\mid )(?P=x)=(?P<of>[^|,]+),|(?P<direct>[^|,=]+)(?:\||\\mid ?))"
    r"(?P<k>[a-z])\\in(?P<set>\\mathbb\{?[A-Z]\}?|[A-Z])\\\}"
)


def image(text: str) -> tuple[str, str] | None:
    r"""`\{x \mid x=3k, k\in\mathbb{Z}\}` as (3#, Z): what is taken of which numbers; None for anything else."""
    match = IMAGE.fullmatch(key(text).replace(r"\colon", "|").replace(":", "|").replace(r"\mid", "|"))
    if match is None:
        return None
    taken = re.sub(rf"(?<![\\A-Za-z]){match['k']}", "#", match["of"] or match["direct"])
    return taken, re.sub(r"\\mathbb|[{}]", "", match["set"])


def _listed(text: str) -> str:
    r"""`x \in \{1,2\}`: the set."""
    sides, relations = chain(text)
    return sides[1] if relations == [r"\in"] and is_name(sides[0]) else text


def multiset(gold: str, answer: str, check: Check, unit: str | None = None) -> bool:
    """As many items, each as often, in any order; in the gold's order where it has names and the answer has none."""
    ours = items(_bare(gold))
    theirs = _unnamed(items(_bare(_listed(answer)), len(ours)), ours)
    if theirs is None or len(ours) != len(theirs):
        return False
    if len(_names(ours)) > 1 and not any(chain(item)[1] for item in theirs):
        return all(any_kind(g, a, check, unit) for g, a in zip(ours, theirs, strict=True))
    return matched(ours, theirs, lambda g, a: any_kind(g, a, check, unit))


def _bare(text: str) -> str:
    whole = group(right_side(text))
    return whole.inner if whole and whole.opens == r"\{" else text


def _unnamed(theirs: list[str], ours: list[str]) -> list[str] | None:
    """The items of an answer; None where they have several names and the gold's have none."""
    return theirs if any(chain(item)[1] for item in ours) or len(_names(theirs)) <= 1 else None


def _names(found: list[str]) -> set[str]:
    """What the items name: x and y of `x=1, y=2`."""
    sides = [chain(item) for item in found]
    return {key(part[0]) for part, relations in sides if relations == ["="] and is_name(part[0])}


def matched(ours: list[T], theirs: list[T], equal: Callable[[T, T], bool]) -> bool:
    """Whether every item has a partner of its own."""
    left = list(theirs)
    for item in ours:
        place = next((n for n, other in enumerate(left) if equal(item, other)), None)
        if place is None:
            return False
        del left[place]
    return not left


def matrix_(gold: str, answer: str, check: Check, unit: str | None = None) -> bool:
    """The same entries in the same places."""
    ours, theirs = matrix(right_side(gold)), matrix(right_side(answer))
    if ours is not None and theirs is None and all(len(row) == 1 for row in ours):
        whole = group(right_side(answer))
        theirs = [[entry] for entry in split(whole.inner, re.compile(","))] if whole and whole.opens == "(" else None
    if ours is None or theirs is None or [len(row) for row in ours] != [len(row) for row in theirs]:
        return False
    pairs = zip(joined.from_iterable(ours), joined.from_iterable(theirs), strict=True)
    return all(same_scalar(g, a, check) for g, a in pairs)


def choice(gold: str, answer: str, check: Check, unit: str | None = None) -> bool:
    """The same letter."""
    chosen = special.choice(answer)
    return chosen is not None and chosen == special.choice(gold)


def text(gold: str, answer: str, check: Check, unit: str | None = None) -> bool:
    """The same words."""
    return special.same_words(gold, answer)


def base_n(gold: str, answer: str, check: Check, unit: str | None = None) -> bool:
    """The same digits in the same base."""
    stated = special.based(answer.rpartition("=")[2].strip())
    return stated is not None and stated == special.based(gold)


def time(gold: str, answer: str, check: Check, unit: str | None = None) -> bool:
    """The same time of day."""
    told = special.clock(answer)
    return told is not None and told == special.clock(gold)


RULES: dict[str, Rule] = {
    "equation": same_equation,
    "interval": interval,
    "tuple": tuple_,
    "pair": pair,
    "set": set_,
    "multiset": multiset,
    "choice": choice,
    "text": text,
    "base_n": base_n,
    "time": time,
    "matrix": matrix_,
    "literal": literal,
}
"""Types that are not here are scalars."""
