"""Delays that happened beside the one asked for: how they are spread, and how they came about over the run."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from delaysim.analysis.plots import clean
from delaysim.analysis.timeline.frame import framed, place
from delaysim.analysis.timeline.record import Record
from delaysim.run.progress import requested_delay

COLOUR, ASKED = "#0072B2", "#D55E00"
BARS, POINTS = 60, 120
"""Bars of the histogram and points along the run, at most."""
BAND = (5, 95)
"""Percentiles."""


def draw(record: Record, stem: str) -> str:
    """Write STEM.svg and STEM.png. Returns the title."""
    figure, axes = plt.subplots(1, 2, figsize=(11.5, 3.6))
    place(figure)
    figure.subplots_adjust(wspace=0.22)
    _histogram(axes[0], record)
    _along(axes[1], record)
    caption = (
        f"{record.name}. {record.trained.sum():,} groups trained on in {len(record.publish):,} updates, warm-up "
        f"included. Right: mean, and the 5th to 95th percentile of groups,\nof neighbouring updates taken together "
        f"where there are more than {POINTS}."
    )
    return framed(figure, _title(record), caption, stem)


def asked_for(record: Record) -> tuple[float, str] | None:
    """The delay the settings name, and by what name; None where nothing bounds it."""
    if record.cfg.suite_name == "fixed_delay" and record.cfg.D is not None:
        return float(record.cfg.D), f"asked for: D = {record.cfg.D}"
    eta = record.law.look_ahead
    return None if eta is None else (float(eta), f"look-ahead: {eta}")


def _title(record: Record) -> str:
    update, delay = record.groups["update"][record.trained], record.groups["delay"][record.trained]
    first = record.steady_update
    steady = "" if first is None else f", {delay[update >= first].mean():.2f} in the steady state"
    asked = requested_delay(record.cfg)
    found = f"{delay.mean():.2f} updates old{steady}"
    return f"Groups trained on are {found} (asked for: {asked}); the oldest {delay.max()}"


def _histogram(ax: Axes, record: Record) -> None:
    delay = record.groups["delay"][record.trained]
    step = max(1, -(-int(delay.max() + 1) // BARS))
    edges = np.arange(0, delay.max() + 1 + step, step)
    counts, _ = np.histogram(delay, edges)
    ax.bar(edges[:-1] - 0.5, counts / len(delay), width=step, align="edge", color=COLOUR, edgecolor="white",
           linewidth=0.3)  # fmt: skip
    ax.set_xlabel("delay (updates)")
    ax.set_ylabel("share of groups" + (f", {step} delays a bar" if step > 1 else ""))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.axvline(delay.mean(), color="#222222", linewidth=1)
    ax.margins(y=0.16)
    _say(ax, delay.mean(), f"mean {delay.mean():.1f}", "#222222", 0)
    if (asked := asked_for(record)) is not None and asked[0] <= 1.5 * delay.max() + 1:
        ax.axvline(asked[0], color=ASKED, linewidth=1.2, linestyle=(0, (4, 2)))
        _say(ax, asked[0], asked[1], ASKED, 1)
    clean(ax)


def _say(ax: Axes, x: float, text: str, colour: str, line: int) -> None:
    """A name beside a vertical line, on the side where there is room."""
    low, high = ax.get_xlim()
    right = x < (low + high) / 2
    ax.annotate(text, (x, 1), xycoords=ax.get_xaxis_transform(), xytext=(4 if right else -4, -2 - 11 * line),
                textcoords="offset points", ha="left" if right else "right", va="top", fontsize=8, color=colour,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8})  # fmt: skip


def _along(ax: Axes, record: Record) -> None:
    x, mean, low, high = along(record.groups["update"][record.trained], record.groups["delay"][record.trained])
    ax.fill_between(x, low, high, color=COLOUR, alpha=0.2, linewidth=0)
    ax.plot(x, mean, color=COLOUR, linewidth=1.4)
    ax.set_xlabel("update")
    ax.set_ylabel("delay (updates)")
    top = max(high.max(), 1.0)
    if (asked := asked_for(record)) is not None and asked[0] <= 1.5 * top:
        ax.axhline(asked[0], color=ASKED, linewidth=1.2, linestyle=(0, (4, 2)))
        top = max(top, asked[0])
    ax.set_ylim(0, 1.14 * top)
    if (first := record.steady_update) is not None:
        ax.axvline(first, color="#888888", linewidth=0.8, linestyle=(0, (4, 3)))
        _say(ax, first, "steady from here", "#555555", 0)
    ax.set_xlim(0, max(len(record.publish) - 1, 1))
    clean(ax)


def along(update: NDArray[np.int64], delay: NDArray[np.int64], points: int = POINTS) -> NDArray[np.float64]:
    """(4, stretches): middle update, mean, 5th and 95th percentile of the delay over stretches of equal width."""
    width = -(-(int(update.max()) + 1) // points)
    stretch = update // width
    rows = []
    for of in np.unique(stretch):
        values = delay[stretch == of]
        rows.append((update[stretch == of].mean(), values.mean(), *np.percentile(values, BAND)))
    return np.array(rows).T
