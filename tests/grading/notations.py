"""The same answer in other notations, and answers near it that are wrong, made from a gold by its type."""

import re
from fractions import Fraction

from delaysim.grading.latex import split
from delaysim.grading.numbers import number
from delaysim.grading.shape import chain, group, items, region
from delaysim.grading.special import based
from delaysim.grading.units import measured


def same(gold):
    """Right answers that are written differently."""
    text = gold.text
    spelled = [
        text.replace(r"\frac", r"\dfrac"),
        f"${text}$",
        f" {text} .",
        re.sub(r"(?<=[-+=(])(?=[0-9a-z])", " ", text),
    ]
    return [*spelled, *SAME.get(gold.type, _none)(text)]


def near(gold):
    """Wrong answers."""
    return NEAR.get(gold.type, _none)(gold.text)


def _none(text):
    return []


def _number(text):
    value = number(text)
    if value is None:
        return []
    over = [f"{value.numerator}/{value.denominator}", rf"\frac{{{value.numerator}}}{{{value.denominator}}}"]
    whole = [f"{value.numerator:,}", f"{value.numerator}.0"] if value.denominator == 1 and abs(value) < 10**15 else []
    return [*over, *whole, f"x = {over[0]}", rf"\left({over[0]}\right)"]


def _sci(text):
    mantissa, _, power = text.partition("e")
    forms = [
        rf"{mantissa} \times 10^{{{int(power)}}}",
        rf"{mantissa}\cdot 10^{{{int(power)}}}",
        f"{mantissa}E{int(power):+d}",
    ]
    return [*forms, str(Fraction(text)) if abs(int(power)) < 15 else text]


def _expression(text):
    if measured(text).core != text:
        return []  # a unit at the end belongs to the whole
    return [rf"\frac{{2\cdot({text})}}{{2}}", f"({text})+0", f"y = {text}"]


def _equation(text):
    left, right = chain(text)[0]
    return [f"{right} = {left}", rf"2\cdot({left}) = 2\cdot({right})"]


def _list(text):
    found = items(text)
    return [", ".join(found[::-1]), r" \text{ and } ".join(found)]


def _set(text):
    inner = group(text)
    return (
        [rf"\left\{{{', '.join(split(inner.inner, re.compile(','))[::-1])}\right\}}"]
        if r"\mid" not in text and "|" not in text
        else []
    )


def _interval(text):
    found = region(text)
    if found is None or len(found.pieces) != 1 or r"\infty" in text:
        return []
    (piece,) = found.pieces
    signs = [r"\le" if closed else "<" for closed in (piece.low_closed, piece.high_closed)]
    return [f"{piece.low} {signs[0]} x {signs[1]} {piece.high}"] if found.variable in (None, "x") else []


def _base(text):
    digits, base = based(text)
    return [rf"{digits}_{{{base}}}", rf"{digits}\text{{ (base {base})}}"]


SAME = {
    **dict.fromkeys(("integer", "decimal", "fraction"), _number),
    "sci": _sci,
    "expr": _expression,
    "equation": _equation,
    "multiset": _list,
    "set": _set,
    "interval": _interval,
    "base_n": _base,
    "choice": lambda text: [rf"\textbf{{({text.strip('ext()}{')[-1]})}}\ 12"] if len(text) == 1 else [],
    "text": lambda text: [text.upper().replace(r"\TEXT", r"\text")],
    "tuple": lambda text: [rf"\left{text[:-1]}\right)"] if text.endswith(")") else [],
}


def _wrong_base(text):
    digits, base = based(text)
    return [digits, f"{digits}_{{{base + 1}}}", digits + f"0_{{{base}}}"]


NEAR = {
    **dict.fromkeys(
        ("integer", "decimal", "fraction", "sci"),
        lambda text: [f"{text}+1", f"({text}, {text})", f"{text}, 7", "x", "1/0"],
    ),
    "expr": lambda text: [f"{text}+1", f"-({text})-1", f"{text}, 7", rf"\pm ({text})+3", "x"],
    "equation": lambda text: [f"{text}+1", chain(text)[0][1] + "+1", "0", f"{text}, x=7"],
    "multiset": lambda text: [items(text)[0], ", ".join(items(text)[1:]), f"{text}, 77"],
    "set": lambda text: ["1", r"\{77\}", f"{text}, 77"],
    "interval": lambda text: ["1", r"\{0, 1\}", "x"],
    "tuple": lambda text: [text[1:-1], f"[{text[1:-1]}]", rf"\{{{text[1:-1]}\}}"],
    "base_n": _wrong_base,
    "choice": lambda text: ["Z", "L", "A, B, C, D", "12"],
    "text": lambda text: [f"not {text}", r"\text{}", "word"],
    "matrix": lambda text: ["0", text.replace(r"\\", "+1\\\\", 1)],
}
