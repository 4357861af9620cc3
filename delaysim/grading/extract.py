"""Where the answer stands in a response. Never raises, never hangs."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Extracted:
    """An answer as it stands in a response."""

    text: str
    method: str
    r"""boxed (`\boxed{5}`) | hash (`#### 5`) | phrase (`The answer is 5.`), and where that is allowed
    whole (the response is nothing but an answer) | math (its last `$5$`) | number (its last number)."""


def extract(response: str, flexible: bool = False) -> Extracted | None:
    """The final answer of a response: its last box, else after its last `####`, else after its last "answer is".

    Only what follows the last `</think>` counts. A last box that is empty or never closed is no answer: no earlier
    one and no other form is looked for. `flexible` also takes a response that is nothing but an answer, else the last
    formula or number.
    """
    text = response.rpartition("</think>")[2]
    for method, find in (*STRICT, *(FLEXIBLE if flexible else ())):
        found = find(text)
        if found is not None:
            return Extracted(found, method) if found else None
    return None


def boxed(text: str) -> str | None:
    """What stands in the last box: None where there is none, "" where it is empty or never closed."""
    box = _last(BOX, text)
    return None if box is None else _braced(text, box.end()).strip()


# Each finder returns None where its form is absent, "" where the form holds nothing.

BOX = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])\s*")
BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
HASH = re.compile(r"(?<!#)####(?!#)([^\n]*)")
PHRASE = re.compile(r"answer[*_]*(?:\s+is\b|\s*:)[*_]*\s*:?\s*", re.IGNORECASE)
HEDGE = re.compile(r"(?:(?:approximately|about|simply|just|therefore|thus|equal to|given by)\s+)+", re.IGNORECASE)
SENTENCE_END = re.compile(r"\.(?=\s|$)|,?\s+(?:because|since|which)\b")


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    match = None
    for match in pattern.finditer(text):  # noqa: B007 - the last one is wanted
        pass
    return match


def _braced(text: str, start: int) -> str:
    """What stands in the braces that open at `start`; nothing where they do not open or never close."""
    depth = 0
    for brace in BRACE.finditer(text, start) if text.startswith("{", start) else ():
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if depth == 0:
            return text[start + 1 : brace.start()]
    return ""


def _hash(text: str) -> str | None:
    line = _last(HASH, text)
    return None if line is None else line[1].strip()


def _phrase(text: str) -> str | None:
    phrase = _last(PHRASE, text)
    if phrase is None:
        return None
    line = text[phrase.end() :].partition("\n")[0]
    return HEDGE.sub("", SENTENCE_END.split(line, maxsplit=1)[0].strip(), count=1)


FORMULA = re.compile(
    r"\$\$(?P<a>[^$]+)\$\$|(?<!\\)\$(?P<b>[^$\n]+?)(?<!\\)\$|\\\((?P<c>.+?)\\\)|\\\[(?P<d>.+?)\\\]", re.DOTALL
)
LAST_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.,/^])[-−]?(?:[$€£]\s*)?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?"
    r"(?:\s*/\s*[0-9]+|\s+[0-9]+\s*/\s*[0-9]+|[eE][-+]?[0-9]+)?%?"
)
ALTERNATIVES = re.compile(rf"{LAST_NUMBER.pattern}(?:,? or {LAST_NUMBER.pattern})*")
PROSE = re.compile(r"(?<![\\A-Za-z{])[A-Za-z]{2,}(?![A-Za-z}])")
_SENTENCE = """is are was so the then thus therefore hence we get gives equals have has it that this i think final
answer"""
SENTENCE = frozenset(_SENTENCE.split())
WORDS_AT_MOST = 6


def _whole(text: str) -> str | None:
    """The response where it is one line that holds an answer and no sentence."""
    text = text.strip()
    said = [word.lower() for word in PROSE.findall(text)]
    short = text and "\n" not in text and len(said) <= WORDS_AT_MOST
    return text if short and not SENTENCE & set(said) else None


def _formula(text: str) -> str | None:
    """The last formula, unless a number follows it."""
    formula, last = _last(FORMULA, text), _last(LAST_NUMBER, FORMULA.sub(lambda match: " " * len(match[0]), text))
    if formula is None or (last is not None and last.start() > formula.end()):
        return None
    return next(part for part in formula.groups() if part is not None).strip()


def _number(text: str) -> str | None:
    """The last number, with the numbers that an "or" puts beside it."""
    last = _last(ALTERNATIVES, text)
    return None if last is None else last[0].strip()


STRICT = (("boxed", boxed), ("hash", _hash), ("phrase", _phrase))
FLEXIBLE = (("whole", _whole), ("math", _formula), ("number", _number))
