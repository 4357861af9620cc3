"""Figures that answer one question each, alike everywhere: one colour and one marker per estimator, lines labelled."""

from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from scipy.stats import t as student

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "delaysim"  # the same figure is the same file

STYLES = {
    "grpo": ("#0072B2", "o"),
    "gmc": ("#D55E00", "s"),
    "reinforce": ("#555555", "^"),
    "tic": ("#009E73", "D"),
    "is": ("#CC79A7", "v"),
}
"""Okabe and Ito's colours, which colour-blind readers tell apart, and a marker that survives grey print."""
NAMES = {"grpo": "GRPO", "gmc": "GMC", "reinforce": "no correction", "tic": "TIC", "is": "plain IS"}
BASE = {"color": "#888888", "linewidth": 0.8, "linestyle": (0, (4, 3))}


def seed_band(ax: Axes, estimator: str, x: ArrayLike, curves: Sequence[ArrayLike], markevery: int = 1) -> None:
    """Every seed faintly, their mean, and its 95 % t interval over seeds, within the 0..1 an accuracy can have."""
    colour, marker = STYLES[estimator]
    x, table = np.asarray(x, float), np.asarray(curves, float)
    for curve in table:
        ax.plot(x, curve, color=colour, alpha=0.25, linewidth=0.7)
    mean = table.mean(0)
    ax.plot(x, mean, color=colour, marker=marker, markersize=3.5, linewidth=1.6, markevery=markevery)
    if len(table) > 1:
        half = student.ppf(0.975, len(table) - 1) * table.std(0, ddof=1) / np.sqrt(len(table))
        low, high = (np.clip(mean + sign * half, 0, 1) for sign in (-1, 1))
        ax.fill_between(x, low, high, color=colour, alpha=0.12, linewidth=0)


def label_ends(ax: Axes, ends: dict[str, tuple[float, float]], gap: float) -> None:
    """Write each estimator's name beside the end of its line, pushed apart to at least `gap`."""
    y_last = -np.inf
    for estimator, (x, y) in sorted(ends.items(), key=lambda item: item[1][1]):
        y_last = max(y, y_last + gap)
        ax.annotate(
            NAMES[estimator], (x, y), xytext=(x, y_last), textcoords="data", color=STYLES[estimator][0], fontsize=8,
            va="center", annotation_clip=False,
        )  # fmt: skip


def clean(ax: Axes) -> None:
    """Only the axes that are read."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="#dddddd", linewidth=0.5)
    ax.set_axisbelow(True)


def save(figure: Figure, stem: str) -> None:
    """Write STEM.svg and STEM.png, the same bytes for the same data."""
    figure.savefig(f"{stem}.svg", metadata={"Date": None}, bbox_inches="tight")
    figure.savefig(f"{stem}.png", dpi=160, metadata={"Software": None}, bbox_inches="tight")
