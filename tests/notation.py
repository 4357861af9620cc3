"""A scripted model: it answers from the golds, each in another notation than the gold's own."""

import re
from fractions import Fraction

from delaysim.run.benchmark import Said

PLAIN_INTEGER = re.compile(r"-?[0-9]+")
SCIENCE = re.compile(r"(-?[0-9.]+)[eE]([+-]?[0-9]+)")


class Oracle:
    """Answers every problem rightly; greedy and sampled responses differ in notation."""

    def respond(self, items, repeat, keys):
        return [self._said(item, r) for item in items for r in range(repeat)]

    def _said(self, item, number):
        text = f"Let me think about it. The result is\n\\[\\boxed{{{other_notation(item.gold, number)}}}\\]"
        return Said(text, list(text.encode()), True)


class Mistaken(Oracle):
    """Sampled response 0 is right, 1 says another number, 2 gives no answer, 3 is cut off; then again."""

    def _said(self, item, number):
        said = super()._said(item, number)
        wrong = Said(r"It is \boxed{-987654321}", list(range(7)), True)
        silent = Said("I do not know.", list(range(5)), True)
        cut = Said(r"So \boxed{12", list(range(9)), False)
        return [said, wrong, silent, cut][number % 4]


def other_notation(gold, number=0):
    """The same answer, written differently; `number` chooses among ways where there are several."""
    text = gold.text
    rewrite = BY_TYPE.get(gold.type)
    return rewrite(text, number) if rewrite else loosened(text, number)


def integer(text, number):
    if not PLAIN_INTEGER.fullmatch(text):
        return loosened(text, number)
    value = int(text)
    return [f"{value:,}".replace(",", "{,}"), f"{value}.0", rf"\frac{{{3 * value}}}{{3}}", rf"\,{value}\;"][number % 4]


def decimal(text, number):
    try:
        value = Fraction(text)
    except ValueError:
        return loosened(text, number)
    sign = "-" if value < 0 else ""
    return [rf"{sign}\dfrac{{{abs(value.numerator)}}}{{{value.denominator}}}", f"{text}0"][number % 2]


def science(text, number):
    match = SCIENCE.fullmatch(text)
    if match is None:
        return loosened(text, number)
    mantissa, power = match[1], int(match[2])
    return [rf"{mantissa} \times 10^{{{power}}}", f"{mantissa}e{power:+03d}", rf"{mantissa}\cdot 10^{{{power}}}"][
        number % 3
    ]


def choice(text, number):
    letter = re.search(r"[A-K]", text)[0]
    return [rf"\textbf{{({letter})}}", rf"\text{{{letter}}}", f"({letter})"][number % 3]


def words(text, number):
    bare = re.sub(r"\\text\{([^{}]*)\}", r"\1", text)
    return [rf"\text{{{bare}}}", rf"\textbf{{{bare}}}", bare][number % 3]


def base(text, number):
    digits, _, below = text.partition("_")
    below = below.strip("{}")
    return [rf"{digits}_{{{below}}}", rf"{digits}_{below}"][number % 2]


def multiset(text, number):
    if re.search(r"[(\[{\\]", text):
        return loosened(text, number)
    parts = [part.strip() for part in re.split(r",|\band\b|\bor\b", text) if part.strip()]
    return [", ".join(parts[::-1]), r" \text{ and } ".join(parts)][number % 2]


def matrix(text, number):
    return text.replace("pmatrix", "bmatrix") if number % 2 else loosened(text, number)


def loosened(text, number):
    """Spelling only: other fractions, brackets that grow, spaces."""
    text = re.sub(r"\\frac(?![A-Za-z])", r"\\dfrac" if number % 2 else r"\\tfrac", text)
    text = re.sub(r"(?<!\\left)(?<!\\)\(", r"\\left(", re.sub(r"\\left\(", "(", text))
    text = re.sub(r"(?<!\\right)(?<!\\)\)", r"\\right)", re.sub(r"\\right\)", ")", text))
    if text.count(r"\left(") != text.count(r"\right)"):
        text = text.replace(r"\left(", "(").replace(r"\right)", ")")
    return rf"\displaystyle {text}"


BY_TYPE = {
    "integer": integer,
    "decimal": decimal,
    "fraction": loosened,
    "sci": science,
    "choice": choice,
    "text": words,
    "base_n": base,
    "multiset": multiset,
    "matrix": matrix,
}
