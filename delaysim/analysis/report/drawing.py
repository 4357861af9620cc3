"""matplotlib figures as small SVG that belongs to the page: its fonts, its colours, no id that another figure has."""

import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from delaysim.analysis.plots import spread
from delaysim.analysis.report.blocks import Panel
from delaysim.analysis.report.colours import INK, MUTED, RULE, variable

WIDTH, HEIGHT, FONT = 330, 230, 11
"""Of a panel and its letters [px]: two panels stand beside each other on a laptop, one on a telephone."""
STYLE: Any = {
    "svg.fonttype": "none", "font.size": FONT, "axes.edgecolor": MUTED, "axes.labelcolor": INK, "text.color": INK,
    "text.parse_math": False, "xtick.color": MUTED, "ytick.color": MUTED, "xtick.labelcolor": INK,
    "ytick.labelcolor": INK, "axes.linewidth": 0.8, "axes.unicode_minus": True, "path.simplify_threshold": 0.5,
    "font.family": ["DejaVu Sans"], "axes.formatter.use_mathtext": False, "svg.hashsalt": "delaysim",
}  # fmt: skip
LETTER = 0.6
"""Width of a letter over its height, generously."""
LABEL = 26
"""Letters of a label beside a line at most."""


def draw(
    paint: Callable[[Axes], str], width: int = WIDTH, height: int = HEIGHT, right: float = 8, title: str = ""
) -> Panel:
    """A panel of one pair of axes; `paint` draws on it and says what it shows. `right`: room for labels [px]."""
    with matplotlib.rc_context(rc=STYLE):
        figure = Figure(figsize=(width / 72, height / 72), dpi=72)
        ax = figure.add_axes((46 / width, 38 / height, (width - 46 - right) / width, (height - 38 - 12) / height))
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", color=RULE, linewidth=0.6)
        ax.set_axisbelow(True)
        ax.tick_params(length=3)
        alt = paint(ax)
        return Panel(svg_of(figure), alt, width, title)


def draw_wide(paint: Callable[[Axes], str], right: float, title: str = "", height: int = 320) -> Panel:
    """A panel across the page, and the same for a small screen."""
    narrow = draw(paint, 340, min(height, 270), right)
    return replace(draw(paint, 680, height, right, title), narrow=narrow)


def room(labels: Sequence[str]) -> float:
    """Pixels that labels beside the ends of lines take."""
    return 14 + LETTER * FONT * max((len(shortened(text)) for text in labels), default=0)


def shortened(label: str) -> str:
    """A label that leaves room for the axes beside it."""
    return label if len(label) <= LABEL else f"{label[: LABEL - 1]}…"


def label_lines(ax: Axes, ends: Sequence[tuple[str, float, float, str]]) -> None:
    """Write (label, x, y, colour) beside the ends of lines, no two over one another."""
    low, high = ax.get_ylim()
    log = ax.get_yscale() == "log"
    low, high = (np.log10(low), np.log10(high)) if log else (low, high)
    known = sorted(
        (float(np.log10(max(y, 1e-300))) if log else y, x, text, c) for text, x, y, c in ends if np.isfinite(y)
    )
    gap = (high - low) * 1.15 * FONT / (ax.bbox.height)
    heights = _within(spread([y for y, *_ in known], gap), low, high)
    place = max((x for _, x, _, _ in known), default=0.0)
    for height, (_, _, text, colour) in zip(heights, known, strict=True):
        ax.annotate(shortened(text), (place, 10**height if log else height), xytext=(7, 0), textcoords="offset points",
                    color=colour, va="center", annotation_clip=False)  # fmt: skip


def _within(heights: Sequence[float], low: float, high: float) -> list[float]:
    """The crowd as a whole moved into the axes."""
    if not heights:
        return []
    shift = max(0.0, low - heights[0]) - max(0.0, heights[-1] - high)
    return [height + shift for height in heights]


class DelayAxis:
    """A log axis that shows 0: the positive delays by their logarithm, 0 an own place to their left."""

    def __init__(self, delays: Sequence[float]) -> None:
        self.delays = sorted(set(delays))
        positive = [d for d in self.delays if d > 0]
        self._low = np.log2(positive[0]) if positive else 0.0
        self._span = max(np.log2(positive[-1]) - self._low, 1.0) if positive else 1.0

    def at(self, delay: float) -> float:
        """Its place."""
        return float(np.log2(delay) - self._low) if delay > 0 else -self.gap

    @property
    def gap(self) -> float:
        """From 0 to the smallest positive delay."""
        return max(0.18 * self._span, 0.5)

    def dress(self, ax: Axes, name: str) -> None:
        """Ticks at the delays, those that would touch left out; a break in the line where the scale is cut."""
        places = [self.at(d) for d in self.delays]
        ax.set_xlim(places[0] - 0.05 * self._span - 0.1, places[-1] + 0.03 * self._span)
        kept = _apart(places, 26 / (ax.bbox.width) * np.ptp(ax.get_xlim()))
        ax.set_xticks([places[i] for i in kept], [f"{self.delays[i]:g}" for i in kept])
        ax.set_xlabel(name)
        if self.delays[0] == 0 and len(self.delays) > 1:
            _cut(ax, -0.5 * self.gap)


def _cut(ax: Axes, x: float) -> None:
    """Two strokes across the axis."""
    pixel = float(np.ptp(ax.get_xlim())) / ax.bbox.width
    for middle in (x - 2.5 * pixel, x + 2.5 * pixel):
        ax.plot([middle - 2 * pixel, middle + 2 * pixel], [-0.02, 0.02], color=MUTED, linewidth=0.8,
                transform=ax.get_xaxis_transform(), clip_on=False)  # fmt: skip


def _apart(places: Sequence[float], gap: float) -> list[int]:
    """Which of sorted places keep a distance, the last one always."""
    kept = [len(places) - 1]
    for i in range(len(places) - 2, -1, -1):
        if places[kept[-1]] - places[i] >= gap:
            kept.append(i)
    return kept[::-1]


def svg_of(figure: Figure) -> str:
    """The figure without fonts, sizes, colours and ids of its own, numbers to a tenth of a pixel."""
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    text = file.getvalue()
    body = text[text.index(">", text.index("<svg")) + 1 : text.rindex("</svg>")]
    body = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", body, flags=re.S)
    body = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", body)
    body = re.sub(r"(?:d|transform|x|y)=\"[^\"]*\"", lambda value: re.sub(r"(\d\.\d)\d+", r"\1", value.group()), body)
    body = re.sub(r"<text .*?>", lambda tag: _coloured(tag.group(), text=True), body)
    body = re.sub(r"style=\"[^\"]*\"", lambda style: _coloured(style.group(), text=False), body)
    width, height = figure.get_size_inches() * 72
    body = re.sub(r">\s+<", "><", body)
    return f'<svg viewBox="0 0 {width:g} {height:g}" ROOT>{_referred(body).strip()}</svg>'


def _coloured(style: str, text: bool) -> str:
    return re.sub(r"#[0-9a-f]{6}\b", lambda found: variable(found.group(), text), style)


def _referred(body: str) -> str:
    """Ids that nothing refers to taken out; the others marked for numbering by `numbered`."""
    wanted = set(re.findall(r"#([\w.-]+)\"|url\(#([\w.-]+)\)", body))
    names = {a or b for a, b in wanted}
    body = re.sub(r" id=\"([\w.-]+)\"", lambda m: f' id="FIG-{m.group(1)}"' if m.group(1) in names else "", body)
    body = body.replace("xlink:href", "href")
    return re.sub(r"(href=\"#|url\(#)([\w.-]+)", r"\1FIG-\2", body)


@contextmanager
def counted() -> Iterator[Callable[[str, str], str]]:
    """A function that gives every figure of a page its own ids and its description in words."""
    count = iter(range(10**9))

    def number(svg: str, alt: str) -> str:
        return svg.replace("FIG-", f"f{next(count)}-").replace("ROOT", f'role="img" aria-label="{alt}"', 1)

    yield number


def used_colours(svg: str) -> set[str]:
    """The colours a figure refers to."""
    return {f"#{found}" for found in re.findall(r"var\(--[ct]([0-9a-f]{6})\)", svg)}
