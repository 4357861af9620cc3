"""Numbers and lists as they stand in a sentence or a table."""

from collections.abc import Iterable, Sequence
from math import isfinite, isnan
from unicodedata import category

from delaysim.analysis.stats import Estimate

ONE_SEED = "One seed says nothing of how the next would differ, so nothing is ranked: run seed=0,1,2 or more."
DASH = "–"


def printable(text: str) -> str:
    """Without control characters and marks that turn the direction of writing."""
    return "".join(c if c in "\n\t" or category(c)[0] != "C" else "\N{REPLACEMENT CHARACTER}" for c in text)


def number(value: float, digits: int = 3) -> str:
    """Fixed decimals for accuracies and shares."""
    return f"{value:.{digits}f}" if isfinite(value) else DASH


def share(value: float) -> str:
    """In whole percent."""
    return f"{value:.0%}" if isfinite(value) else DASH


def signed(value: float) -> str:
    """With its sign; a true minus."""
    if not isfinite(value):
        return DASH
    text = f"{value:+.3f}".replace("-", "\N{MINUS SIGN}")
    return text[1:] if float(text[1:]) == 0 else text


def short(value: float) -> str:
    """Three significant digits, whatever the size."""
    if not isfinite(value):
        return DASH
    if value and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.2e}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def interval(of: Estimate, sign: bool = False) -> str:
    """A mean and half its interval."""
    mean = signed(of.mean) if sign else number(of.mean)
    return mean if isnan(of.half_width) else f"{mean} ±{of.half_width:.3f}"


def points(share: float) -> str:
    """A difference of accuracies in percentage points."""
    size = abs(100 * share)
    text = f"{size:.0f}" if size >= 9.5 else f"{size:.1f}".removesuffix(".0")
    return f"{text} point{'' if text == '1' else 's'}"


def p_value(p: float) -> str:
    """As tables print it."""
    return DASH if isnan(p) else "<.001" if p < 0.001 else f"{p:.3f}".lstrip("0") if p < 1 else "1"


def sentence(text: str) -> str:
    """With a capital where it begins with a word of ours: names of settings and losses stay as they are."""
    return f"No{text[2:]}" if text.startswith("no ") else text


def listing(parts: Sequence[str]) -> str:
    """a, b and c."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else ""


def count(number: int, noun: str) -> str:
    """1 run, 2 runs."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def ranges(numbers: Iterable[int]) -> str:
    """Whole numbers, neighbours drawn together: 0-4, 7."""
    runs: list[list[int]] = []
    for value in sorted(numbers):
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)
