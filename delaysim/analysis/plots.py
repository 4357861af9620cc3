"""Figures that answer one question each, alike everywhere: one colour and one marker per estimator, lines labelled."""

from collections.abc import Sequence
from textwrap import wrap

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
    "tis": ("#E69F00", "P"),
    "vcpo": ("#8C510A", "X"),
    "cispo": ("#56B4E9", "p"),
    "sapo": ("#7570B3", "*"),
    "gspo": ("#C51B7D", "h"),
    "a3po": ("#66A61E", "<"),
    "gac": ("#000000", "d"),
}
"""Okabe and Ito's colours first, which colour-blind readers tell apart, and a marker that survives grey print."""
SPARE = (("#4D4D4D", ">"), ("#1B9E77", "8"), ("#A6761D", "H"), ("#B2182B", "D"), ("#2166AC", "s"), ("#762A83", "o"))
NAMES = {
    "grpo": "GRPO", "gmc": "GMC", "reinforce": "no correction", "tic": "TIC", "is": "plain IS", "tis": "TIS",
    "vcpo": "VCPO", "cispo": "CISPO", "sapo": "SAPO", "gspo": "GSPO", "a3po": "A-3PO", "gac": "GRPO+GAC",
}  # fmt: skip
BASE = {"color": "#888888", "linewidth": 0.8, "linestyle": (0, (4, 3))}


def style(estimator: str) -> tuple[str, str]:
    """Colour and marker of an estimator or of a label NAME:SETTINGS; the same spare one everywhere for others."""
    name = estimator.partition(":")[0]
    return STYLES.get(name) or SPARE[sum(name.encode()) % len(SPARE)]


def label(estimator: str) -> str:
    """How an estimator, or a label NAME:SETTINGS, is written in a figure."""
    name, _, settings = estimator.partition(":")
    return NAMES.get(name, name) + (f" {settings}" if settings else "")


def seed_band(ax: Axes, estimator: str, x: ArrayLike, curves: Sequence[ArrayLike], markevery: int = 1) -> None:
    """Every seed faintly, their mean, and its 95 % t interval over seeds, within the 0..1 an accuracy can have."""
    colour, marker = style(estimator)
    x, table = np.asarray(x, float), np.asarray(curves, float)
    for curve in table:
        ax.plot(x, curve, color=colour, alpha=0.25, linewidth=0.7)
    mean = table.mean(0)
    ax.plot(x, mean, color=colour, marker=marker, markersize=3.5, linewidth=1.6, markevery=markevery)
    if len(table) > 1:
        half = student.ppf(0.975, len(table) - 1) * table.std(0, ddof=1) / np.sqrt(len(table))
        low, high = (np.clip(mean + sign * half, 0, 1) for sign in (-1, 1))
        ax.fill_between(x, low, high, color=colour, alpha=0.12, linewidth=0)


def spread(values: Sequence[float], gap: float) -> list[float]:
    """Sorted values moved apart to at least `gap`, each crowd around its own mean."""
    crowds: list[list[float]] = []
    for value in values:
        crowds.append([value])
        while len(crowds) > 1 and _top(crowds[-2], gap) + gap > _bottom(crowds[-1], gap):
            crowds[-2:] = [crowds[-2] + crowds[-1]]
    return [_bottom(crowd, gap) + i * gap for crowd in crowds for i in range(len(crowd))]


def _bottom(crowd: list[float], gap: float) -> float:
    return sum(crowd) / len(crowd) - gap * (len(crowd) - 1) / 2


def _top(crowd: list[float], gap: float) -> float:
    return sum(crowd) / len(crowd) + gap * (len(crowd) - 1) / 2


def label_ends(ax: Axes, ends: dict[str, tuple[float, float]], gap: float) -> None:
    """Write each estimator's name beside the end of its line, pushed apart to at least `gap`."""
    order = sorted(ends, key=lambda name: ends[name][1])
    for estimator, y in zip(order, spread([ends[name][1] for name in order], gap), strict=True):
        ax.annotate(
            label(estimator), ends[estimator], xytext=(ends[estimator][0], y), textcoords="data",
            color=style(estimator)[0], fontsize=8, va="center", annotation_clip=False,
        )  # fmt: skip


def wrapped(text: str, width: int = 78) -> str:
    """A title over several lines where it is long."""
    return "\n".join(wrap(text, width))


def clean(ax: Axes) -> None:
    """Only the axes that are read."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="#dddddd", linewidth=0.5)
    ax.set_axisbelow(True)


def save(figure: Figure, stem: str) -> None:
    """Write STEM.svg and STEM.png, the same bytes for the same data."""
    figure.savefig(f"{stem}.svg", metadata={"Date": None}, bbox_inches="tight")
    figure.savefig(f"{stem}.png", dpi=160, metadata={"Software": None}, bbox_inches="tight")
