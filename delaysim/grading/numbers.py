"""Whether two texts write the same number, exactly. Never raises, never hangs."""

import re
from fractions import Fraction

LONGEST = 1000
"""A longer text is no number [characters]."""
LARGEST_EXPONENT = 400


def same_number(gold: str, answer: str) -> bool:
    """Whether both texts write the same number, exactly."""
    value = number(gold)
    return value is not None and value == number(answer)


def number(text: str) -> Fraction | None:
    r"""The number a text writes: `-1,234.50`, `3/4`, `1\frac{4}{5}`, `2\times10^{-3}`, `1e-5`; None for anything else.

    Dollar and percent signs, degrees and a unit in words are left out; `x=` may stand in front.
    """
    if len(text) > LONGEST:
        return None
    plain = _peeled(_rewritten(text.strip("*_` \t\r\n")))
    match = NUMBER.match(plain)
    return _value(match) if match and _is_unit(plain[match.end() :]) else None


# What number it is.

ARGUMENT = r"\s*(?:\{([^{}]*)\}|([0-9]))"
REWRITES = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\\(?:left|right|displaystyle)(?![A-Za-z])|\\!", ""),
        (r"\{,\}", ","),
        (r"(?<=[0-9])\\,(?=[0-9]{3}(?![0-9]))", ""),
        (r"\\[,;: ]|~", " "),
        ("[\N{MINUS SIGN}\N{EN DASH}]", "-"),
        (r"\\(?:times|cdot)(?![A-Za-z])|[×·]", "*"),
        (r"\\([%$])", r"\1"),
        (r"(?:\^\{?\\circ\}?|\\degree|°)(?:\s*[CF]\b)?", "°"),
        (r"\\[dtc]?frac" + ARGUMENT + ARGUMENT, r" \1\2/\3\4 "),
    )
]
PEELS = [
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r"\$(.+)\$",
        r"\\\((.+)\\\)",
        r"\\\[(.+)\\\]",
        r"\\(?:text|textbf|mathrm|mathbf|mbox)\{([^{}]*)\}",
        r"\{([^{}]*)\}",
    )
]
DIGITS = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+"
POWER = r"[+-]?[0-9]{1,4}"
NUMBER = re.compile(
    rf"""(?:[A-Za-z]\s*=\s*)?(?:[$€£]\s*(?=[+-]))?(?P<sign>[+-]?)\s*[$€£]?\s*(?:
        (?P<whole>[0-9]+)\s+(?P<part>[0-9]+)\s*/\s*(?P<whole_of>[0-9]+)
        | (?P<top>[+-]?(?:{DIGITS}))\.?\s*/\s*(?P<bottom>[+-]?(?:{DIGITS}))
        | 10\^(?:(?P<ten>{POWER})(?![0-9])|\{{(?P<ten_to>{POWER})\}})
        | (?P<plain>{DIGITS})(?:
            [eE](?P<e>{POWER})(?![0-9])
            | \s*[*x]\s*10\^(?:(?P<times_ten>{POWER})(?![0-9])|\{{(?P<times_ten_to>{POWER})\}})
        )?
    )""",
    re.VERBOSE,
)


def _rewritten(text: str) -> str:
    for pattern, replacement in REWRITES:
        text = pattern.sub(replacement, text)
    return text.strip()


def _peeled(text: str) -> str:
    """The text without the math delimiters, font commands and braces around the whole of it."""
    while inner := next(filter(None, (pattern.fullmatch(text) for pattern in PEELS)), None):
        text = inner[1].strip()
    return text


def _value(match: re.Match[str]) -> Fraction | None:
    """The number of a match; None where a denominator is 0 or an exponent out of bounds."""
    try:
        value = _unsigned({name: text for name, text in match.groupdict().items() if text})
    except (ZeroDivisionError, OverflowError):
        return None
    return -value if match["sign"] == "-" else value


def _unsigned(part: dict[str, str]) -> Fraction:
    if "whole" in part:
        return int(part["whole"]) + Fraction(int(part["part"]), int(part["whole_of"]))
    if "top" in part:
        return _decimal(part["top"]) / _decimal(part["bottom"])
    powers = [int(part[name]) for name in ("ten", "ten_to", "e", "times_ten", "times_ten_to") if name in part]
    if any(abs(power) > LARGEST_EXPONENT for power in powers):
        raise OverflowError
    return _decimal(part.get("plain", "1")) * Fraction(10) ** sum(powers)


def _decimal(text: str) -> Fraction:
    return Fraction(text.replace(",", ""))


# What may follow a number without changing it.

UPRIGHT = re.compile(r"\\(?:text|textrm|mathrm|mbox)\s*\{([^{}]*)\}")
UNIT_POWER = re.compile(r"(?<=[A-Za-z}])(?:\^\{?-?[0-9]\}?|[²³])$")
WORDS_AT_MOST = 4
_SHORT = "cm mm km kg mg ml mL lb lbs oz ft yd mi hr hrs min sec mph of per in a an"
_CHANGING = """and or to plus minus times over point mod base pi am pm noon squared cubed root factorial
one two three four five six seven eight nine ten eleven twelve half halves third thirds fourth fourths quarter
quarters fifth fifths sixth sixths seventh sevenths eighth eighths ninth ninths tenth tenths hundredth hundredths
thousandth thousandths dozen dozens hundred hundreds thousand thousands million millions billion billions trillion
trillions score grand"""
SHORT_UNITS = frozenset(_SHORT.split())
UPRIGHT_UNITS = SHORT_UNITS | frozenset("mgshL")
NOT_UNITS = frozenset(_CHANGING.split())
"""Words that change the number before them."""


def _is_unit(rest: str) -> bool:
    """Whether what follows a number is nothing, a sign such as `%`, or a unit in words."""
    rest = rest.rstrip().removesuffix(".").rstrip("$%°€£ ")
    spaced = rest.lstrip("$%°€£ ")
    if not spaced:
        return True
    text = UNIT_POWER.sub("", spaced)
    words = UPRIGHT.sub(r" \1 ", text)
    short = SHORT_UNITS if words == text else UPRIGHT_UNITS
    names = re.split(r"[\s/]+", words.strip())
    attached = rest[0].isalpha()
    return len(names) <= WORDS_AT_MOST and all(_is_unit_word(name, short, attached) for name in names)


def _is_unit_word(word: str, short: frozenset[str], attached: bool) -> bool:
    known = word in short
    return known or (not attached and bool(re.fullmatch("[A-Za-z]{3,}", word)) and word.lower() not in NOT_UNITS)
