r"""Answers that are no mathematics: the letter of a choice, words, a numeral in a base, a time of day."""

import re
from itertools import pairwise

from delaysim.grading.latex import key

LETTERS = "A-K"
_LABELS = (
    rf"(?:\\text\{{)?\(?\s*([{LETTERS}])\s*\)?[.):]?\}}?",
    r"(?:\\text\{)?\s*(?:(?:the )?(?:correct )?(?:answer|option|choice)(?: is)?:?)\s*\}?\s*"
    rf"(?:\\text\{{)?\(?([{LETTERS}])\)?[.)]?\}}?",
    rf"\\text\{{\s*\(?([{LETTERS}])\)?[.):]?\s*\}}[.):]?\s*\S.*",
    rf"\(([{LETTERS}])\)\s*\S.*",
    rf"([{LETTERS}])[.):]\s*\S.*",
    rf"\\text\{{\s*\(?([{LETTERS}])[.):]\s*[^{{}}]*\}}.*",
)
CHOICE = [re.compile(pattern, re.DOTALL | re.IGNORECASE if "answer" in pattern else re.DOTALL) for pattern in _LABELS]
SMALL = re.compile(r"(?:\\text\{)?\(([a-k])\)\}?")
ANOTHER = re.compile(
    rf"\(([{LETTERS}])\)|(?<![A-Za-z])([{LETTERS}])[.)](?![A-Za-z0-9])|\\text\{{\s*([{LETTERS}])\s*\}}"
)


def choice(text: str) -> str | None:
    r"""The letter that a text chooses: `C`, `(C)`, `\text{(C)}\ 12`, `C. 12`, `option C`; None for none or two."""
    match = next(filter(None, (pattern.fullmatch(text) for pattern in CHOICE)), None)
    if match is None:
        small = SMALL.fullmatch(text)
        return small[1].upper() if small else None
    letter = match[1].upper()
    named = {found for groups in ANOTHER.findall(text) for found in groups if found}
    return letter if named <= {letter} else None


ARTICLES = frozenset(["a", "an", "the"])
ROMAN = {name: str(n) for n, name in enumerate(["i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x"], 1)}


def words(text: str) -> tuple[str, ...]:
    """The words of a text, without case, punctuation, articles and fonts."""
    bare = re.sub(r"\\text\s*\{|[{}]|\\(?=[A-Za-z])", " ", text)
    found = [word for word in re.findall(r"[^\W_]+", bare.casefold()) if word not in ARTICLES]
    return tuple(ROMAN.get(word, word) if len(found) > 1 else word for word in found)


def is_words(text: str) -> bool:
    r"""Whether a plain text is words: `\text{east}`, `Quadrant I`, `even`, not `MR`, `abc` or `\sin x`."""
    inner = re.fullmatch(r"\\text\{([^{}]*)\}", text)
    if inner:
        return bool(re.search(r"[^\W\d_]{2}", inner[1]))
    prose = re.sub(r"\\text\{([^{}]*)\}", r"\1", text)
    runs = re.findall(r"[A-Za-z]+", prose)
    only_words = bool(re.fullmatch(r"[A-Za-z][A-Za-z .,'-]*[A-Za-z.]", prose))
    return only_words and any(_is_word(run) for run in runs)


def _is_word(run: str) -> bool:
    steps = {ord(b) - ord(a) for a, b in pairwise(run)}
    return run.casefold() == "no" or (len(run) >= 3 and steps != {1} and not run.isupper())


_NAMES = "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
BASES = {name: base for base, name in enumerate(_NAMES.split(), 2)} | {"binary": 2, "octal": 8, "hexadecimal": 16}
BASED = re.compile(r"\(?(?P<digits>[0-9A-Fa-f ,{}]*[0-9A-Fa-f])\s*\)?\s*_\s*\{?\s*(?P<base>[0-9]{1,2}|[a-z]+)\s*\}?")
IN_BASE = re.compile(
    r"(?P<digits>[0-9A-F]+)\s*\(?\s*(?:in\s+)?base[\s-]*(?P<base>[0-9]{1,2}|[a-z]+)\s*\)?", re.IGNORECASE
)


def based(text: str) -> tuple[str, int] | None:
    r"""Digits and base of `52_8`, `1A_{16}`, `52_{\text{eight}}`, `52 (base 8)`; None for anything else."""
    text = re.sub(r"\\text\{([^{}]*)\}", r" \1 ", text).strip()
    match = BASED.fullmatch(text) or IN_BASE.fullmatch(text)
    if match is None:
        return None
    name = match["base"].lower()
    base = int(name) if name.isdigit() else BASES.get(name, 0)
    digits = re.sub(r"[ ,{}]", "", match["digits"]).upper()
    if not 2 <= base <= 36 or (not digits[0].isdigit() and not any(c.isdigit() for c in digits)):
        return None
    if any(int(digit, 36) >= base for digit in digits):
        return None
    return digits.lstrip("0") or "0", base


CLOCK = re.compile(
    r"(?P<hour>[0-9]{1,2})(?:\s*[:h]\s*(?P<minute>[0-5][0-9]))?(?::(?P<second>[0-5][0-9]))?\s*"
    r"(?:\\text\{)?\s*(?:(?P<half>[ap])\.?\s*m\.?)?\s*(?:\\text\{)?\s*(?P<word>noon|midnight|o'clock)?\s*\}?\.?",
    re.IGNORECASE,
)


def clock(text: str) -> int | None:
    """Seconds after midnight of `1:58 am`, `5pm`, `17:00`, `noon`; None where a time lacks its half of the day."""
    text = re.sub(r"\\text\{([^{}]*)\}", r" \1 ", text).strip()
    text = re.sub(r"^[a-z]\s*=\s*", "", text)
    if text.lower() in ("noon", "midnight"):
        text = "12 " + text
    match = CLOCK.fullmatch(text)
    if match is None or not (match["half"] or match["word"] or match["minute"]):
        return None
    hour = _hour(int(match["hour"]), (match["half"] or "").lower(), (match["word"] or "").lower())
    return None if hour is None else hour * 3600 + int(match["minute"] or 0) * 60 + int(match["second"] or 0)


def _hour(hour: int, half: str, word: str) -> int | None:
    if word in ("noon", "midnight"):
        return {"noon": 12, "midnight": 0}[word] if hour == 12 else None
    if half:
        return hour % 12 + 12 * (half == "p") if 1 <= hour <= 12 else None
    return hour if hour < 24 and word != "o'clock" else None


def is_clock(text: str) -> bool:
    """Whether a text is a time of day for certain: it says which half of the day."""
    bare = re.sub(r"\\text\{([^{}]*)\}", r"\1", text)
    return clock(text) is not None and bool(re.search(r"[ap]\.?\s*m|noon|midnight", bare, re.IGNORECASE))


def same_words(gold: str, answer: str) -> bool:
    """Whether two texts are the same words."""
    return (bool(words(gold)) and words(gold) == words(answer)) or key(gold) == key(answer)
