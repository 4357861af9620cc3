"""Where the answer stands in a response. Never raises, never hangs."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Extracted:
    """An answer as it stands in a response."""

    text: str
    method: str
    r"""boxed (`\boxed{5}`) | hash (`#### 5`) | phrase (`The answer is 5.`)."""


def extract(response: str) -> Extracted | None:
    """The final answer of a response: its last box, else after its last `####`, else after its last "answer is".

    Only what follows the last `</think>` counts. A last box that is empty or never closed is no answer: no earlier
    one and no other form is looked for.
    """
    text = response.rpartition("</think>")[2]
    for method, find in (("boxed", _boxed), ("hash", _hash), ("phrase", _phrase)):
        found = find(text)
        if found is not None:
            return Extracted(found, method) if found else None
    return None


# Each finder returns None where its form is absent, "" where the form holds nothing.

BOX = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])\s*")
BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
HASH = re.compile(r"(?<!#)####(?!#)([^\n]*)")
PHRASE = re.compile(r"answer[*_]*(?:\s+is\b|\s*:)[*_]*\s*:?\s*", re.IGNORECASE)
SENTENCE_END = re.compile(r"\.(?=\s|$)")


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    match = None
    for match in pattern.finditer(text):  # noqa: B007 - the last one is wanted
        pass
    return match


def _boxed(text: str) -> str | None:
    box = _last(BOX, text)
    return None if box is None else _braced(text, box.end()).strip()


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
    return SENTENCE_END.split(line, maxsplit=1)[0].strip()
