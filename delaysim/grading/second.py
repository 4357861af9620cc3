r"""A second opinion, simple on purpose and sharing no code with the rest: letters after replacements, and fractions."""

import re
from fractions import Fraction

REPLACED = (
    (r"\\[dt]frac", r"\\frac"),
    (r"\\(?:left|right|displaystyle|!|,|;|:| )", ""),
    (r"\\(?:text|mathrm|textbf|mbox)\s*\{([^{}]*)\}", r"\1"),
    (r"\\(?:\$|%)|\$|%", ""),
    (r"\^\{?\\circ\}?|°", ""),
    (r"\\frac([0-9])([0-9])", r"\\frac{\1}{\2}"),
    (r"\\frac\{(-?[0-9]+)\}\{([0-9]+)\}", r"\1/\2"),
    (r"\s+|\.$", ""),
)


def normal(text: str) -> str:
    """The text after the replacements."""
    for pattern, to in REPLACED:
        text = re.sub(pattern, to, text)
    return text


def fraction(text: str) -> Fraction | None:
    """The number a normal text writes, None for anything else."""
    bare = text.replace(",", "") if re.fullmatch(r"-?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?", text) else text
    if not re.fullmatch(r"[-+]?[0-9]{0,400}\.?[0-9]{0,400}(/[0-9]{1,400}|e[-+]?[0-9]{1,3})?", bare):
        return None
    try:
        return Fraction(bare)
    except (ValueError, ZeroDivisionError):
        return None


def agrees(gold: str, answer: str) -> bool:
    """Whether both texts are the same letters or the same number."""
    one, other = normal(gold), normal(answer)
    a, b = fraction(one), fraction(other)
    return one == other if a is None or b is None else a == b
