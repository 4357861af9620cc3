"""Colours that hold on white and on black paper: the figures name them, the page's style sheet says what they are."""

from collections.abc import Iterable

PAPER = {"light": "#ffffff", "dark": "#15181c"}
INK, MUTED, RULE = "#010203", "#6a6b6c", "#d8d9da"
"""What matplotlib draws words, lesser words and grid lines with; each becomes a variable of the page."""
ROLES = {INK: "currentColor", MUTED: "var(--muted)", RULE: "var(--rule)"}
LINE, TEXT = 3.0, 4.5
"""Contrast with the paper that WCAG 2.2 asks of graphics (1.4.11) and of text (1.4.3)."""


def variable(colour: str, text: bool) -> str:
    """How a figure refers to a colour."""
    return ROLES.get(colour) or f"var(--{'t' if text else 'c'}{colour[1:]})"


def definitions(colours: Iterable[str], scheme: str) -> str:
    """The variables of these colours for `light` or `dark` paper."""
    paper = PAPER[scheme]
    return "".join(
        f"--c{colour[1:]}:{legible(colour, paper, LINE)};--t{colour[1:]}:{legible(colour, paper, TEXT)};"
        for colour in sorted(set(colours) - set(ROLES))
    )


def legible(colour: str, paper: str, least: float) -> str:
    """The colour, moved towards black or white, whichever is farther from the paper, until its contrast is enough."""
    target = 0 if luminance(paper) > 0.5 else 255
    for step in range(21):
        mixed = _mixed(colour, target, step / 20)
        if contrast(mixed, paper) >= least:
            return mixed
    return _mixed(colour, target, 1)


def contrast(a: str, b: str) -> float:
    """From 1 to 21. Source: WCAG 2.2, contrast ratio."""
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    """Of an sRGB colour #rrggbb, from 0 to 1. Source: WCAG 2.2, relative luminance."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in _channels(colour))]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _channels(colour: str) -> list[int]:
    return [int(colour[i : i + 2], 16) for i in (1, 3, 5)]


def _mixed(colour: str, target: int, share: float) -> str:
    return "#" + "".join(f"{round(v + (target - v) * share):02x}" for v in _channels(colour))
