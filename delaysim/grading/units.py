r"""A quantity: what is measured, and in which unit. `20\text{ cm}^2` is 20 and an area; 3 m and 300 cm are equal."""

import re
from dataclasses import dataclass
from fractions import Fraction

from delaysim.grading.numbers import NOT_UNITS

WORDS_AT_MOST = 5


@dataclass(frozen=True)
class Unit:
    """A unit: its dimension as sorted (base, power) pairs, and how many base units it holds."""

    dimension: tuple[tuple[str, int], ...]
    scale: Fraction = Fraction(1)


@dataclass(frozen=True)
class Quantity:
    """A text without its unit, and the unit where it is a known one."""

    core: str
    unit: Unit | None = None


_TABLE = {
    "length": "m meter metre=1 km kilometer kilometre=1000 cm centimeter centimetre=1/100 mm millimeter=1/1000 "
    "dm decimeter=1/10 in inch=127/5000 ft foot feet=381/1250 yd yard=1143/1250 mi mile=201168/125",
    "mass": "g gram=1 kg kilogram=1000 mg milligram=1/1000 lb pound=45359237/100000 "
    "oz ounce=45359237/1600000 ton=1000000",
    "time": "s sec second=1 min minute=60 h hr hour=3600 day=86400 week=604800 month=2629800 yr year=31557600",
    "volume": "L l liter litre=1 ml mL milliliter=1/1000 gallon gal=4 quart=1",
    "money": "cent ¢=1 dollar USD usd buck=100",
    "euro": "euro EUR=1",
    "pound_sterling": "GBP=1",
    "degree": "degree deg=1",
    "radian": "radian rad=1",
    "percent": "percent percentage pct=1",
    "voltage": "V volt=1",
    "current": "A amp ampere=1",
    "force": "N newton=1",
    "energy": "J joule=1 kJ=1000",
    "power": "W watt=1",
    "pressure": "Pa pascal=1",
    "frequency": "Hz hertz=1",
    "temperature": "K kelvin=1",
}
_PLURALS = {"inch": "inches", "foot": "feet"}


def _units() -> dict[str, Unit]:
    found = {}
    for base, entries in _TABLE.items():
        names: list[str] = []
        for word in entries.split():
            name, _, scale = word.partition("=")
            names.append(name)
            if scale:
                unit = Unit(((base, 1),), Fraction(scale))
                found.update(dict.fromkeys(names, unit))
                found.update({_PLURALS.get(n, n + "s"): unit for n in names if len(n) > 1})
                names = []
    return found


UNITS = _units()
AMBIGUOUS = frozenset(name for name in UNITS if len(name) == 1) | {"in", "min", "Pa", "deg"}
"""Names that bare letters in math may be by accident; they are units in `\\text{}` only."""
SPEED = "mph", "kmph", "kph"
FACTORS = {
    "hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12, "dozen": 12,
}  # fmt: skip

MONEY = re.compile(r"^(-?)\s*(?:\\\$|[€£])\s*(?=[-0-9.\\(])")
MARK = re.compile(r"(?:°\s*(?:\\text\{)?(?P<scale>[CF]?)\}?|(?P<percent>\\?%)|(?P<money>\\\$|€|£))$")
POWER = r"(?:\s*\^\s*(?:\{\s*(?P<p>-?[0-9])\s*\}|(?P<q>[0-9])))?"
UPRIGHT = re.compile(r"(?:(?<=\\pi)|(?<![_^{\\A-Za-z]))\s*\\text\{\s*(?P<words>[^{}]*?)\s*\}" + POWER + "$")
BARE = re.compile(
    r"(?:(?<=[0-9})°])|\s)(?P<words>[A-Za-z][A-Za-z.]*(?:[\s/-]+[A-Za-z.]+){0,5}/?[A-Za-z]*)" + POWER + "$"
)
ANGLE = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc)\s*(?:\^\s*(?:\{[^{}]*\}|[0-9]))?\s*[0-9.]+\s*$")
AFTER_NUMBER = re.compile(r"[0-9})°%!]\s*$|\\pi\s*$")


def measured(text: str, unit: str | None = None) -> Quantity:
    """Split the unit from a plain text. `unit` names one that may stand as a single letter, `m` or `m^2`."""
    text, money = _money(text)
    for _ in range(3):
        mark = MARK.search(text)
        if mark and text[: mark.start()].strip() and not ANGLE.search(text[: mark.start()]):
            return Quantity(text[: mark.start()].strip(), _marked(mark))
        words = _words(text, unit)
        if words is None:
            break
        text, found, factor = words
        if factor:
            return Quantity(rf"{factor}\cdot ({text})", money)
        if found:
            return Quantity(text, found)
    return Quantity(text, money)


def _money(text: str) -> tuple[str, Unit | None]:
    match = MONEY.match(text)
    if match is None:
        return text, None
    unit = UNITS[{"€": "euro", "£": "GBP"}.get(match[0].strip()[-1], "dollar")]
    return match[1] + text[match.end() :].strip(), unit


def _marked(mark: re.Match[str]) -> Unit:
    if mark["percent"]:
        return UNITS["percent"]
    if mark["money"]:
        return UNITS[{"€": "euro", "£": "GBP"}.get(mark["money"], "dollar")]
    return Unit(((f"degree{mark['scale']}", 1),))


def _words(text: str, unit: str | None) -> tuple[str, Unit | None, int] | None:
    """The text before its last words, their unit and their factor; None where the words are no unit."""
    match = UPRIGHT.search(text) or BARE.search(text)
    if match is None or not AFTER_NUMBER.search(text[: match.start("words")].replace("\\text{", "")):
        return None
    words = [word for word in re.split(r"[\s.-]+", match["words"]) if word]
    if words[:1] and words[0].lower() in FACTORS and len(words) <= WORDS_AT_MOST:
        return text[: match.start()].strip(), None, FACTORS[words[0].lower()]
    upright = match.re is UPRIGHT
    found = compound(match["words"], int(match["p"] or match["q"] or 1))
    letter = match["words"] in AMBIGUOUS and not upright
    if letter and (unit is None or found is None or found != named(unit)):
        return None
    if found is None and not _plain_words(words, upright):
        return None
    return text[: match.start()].strip(), found, 0


def _plain_words(words: list[str], upright: bool) -> bool:
    """Whether words only say what was counted: apples, students in the class."""
    longest = all(len(word) >= 3 or word in ("of", "in", "per", "a", "an", "by", "on") for word in words)
    changing = any(word.lower() in NOT_UNITS for word in words)
    return len(words) <= WORDS_AT_MOST and not changing and (longest or upright) and all(w.isalpha() for w in words)


def named(text: str) -> Unit | None:
    r"""The unit of a text such as `km/h`, `^{\circ}` or `cm^2`; None for an unknown one."""
    text = text.strip().strip("$ ")
    if text in ("°", r"^{\circ}", r"^\circ", r"\circ"):
        return Unit((("degree", 1),))
    if text in ("%", r"\%"):
        return UNITS["percent"]
    match = re.fullmatch(r"(?:\\(?:text|mathrm)\{)?\s*(?P<words>[A-Za-z][A-Za-z ./]*?)\s*\}?" + POWER, text)
    return compound(match["words"], int(match["p"] or match["q"] or 1)) if match else None


def compound(words: str, power: int) -> Unit | None:
    """`km/h`, `miles per hour`, `square feet`: the unit a phrase names, None where a part is unknown."""
    parts = re.split(r"\s*/\s*|\s+per\s+|\s+an?\s+", words.strip().rstrip("."))
    if len(parts) > 2:
        return None
    top = _simple(parts[0], power if len(parts) == 1 else 1)
    if top is None or len(parts) == 1:
        return top
    below = _simple(parts[1], power)
    return None if below is None else _product(top, below, -1)


def _simple(words: str, power: int) -> Unit | None:
    if words in SPEED:
        return _product(UNITS["mi" if words == "mph" else "km"], UNITS["h"], -1)
    names = words.split()
    if names and names[-1] in ("squared", "cubed"):
        names, power = names[:-1], {"squared": 2, "cubed": 3}[names[-1]]
    if names and names[0].lower() in ("square", "sq", "cubic", "cu"):
        names, power = names[1:], 2 if names[0].lower().startswith("s") else 3
    if len(names) != 1:
        return None
    base = UNITS.get(names[0]) or UNITS.get(names[0].lower())
    if base is None:
        return None
    return Unit(tuple((name, p * power) for name, p in base.dimension), base.scale**power)


def _product(one: Unit, other: Unit, power: int) -> Unit:
    dimension = dict(one.dimension)
    for name, p in other.dimension:
        dimension[name] = dimension.get(name, 0) + p * power
    return Unit(tuple(sorted((n, p) for n, p in dimension.items() if p)), one.scale * other.scale**power)


def ratio(gold: Unit | None, answer: Unit | None) -> Fraction | None:
    """What to multiply the answer by to have it in the gold's unit: 1 where a unit is unknown, None for never."""
    if gold is None or answer is None or gold == answer:
        return Fraction(1)
    if {gold.dimension[0][0], answer.dimension[0][0]} in ({"degree", "degreeC"}, {"degree", "degreeF"}):
        return Fraction(1)
    return answer.scale / gold.scale if gold.dimension == answer.dimension else None
