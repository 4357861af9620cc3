"""The figure of a screening: what each estimator gives up against what it holds down, and how both follow delay."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from delaysim.analysis.plots import clean, label, label_ends, save, spread, style

Rows = list[dict[str, Any]]
Screened = tuple[str, Rows]
"""An estimator's label, its rows: all delays first, then one per delay bin."""


def draw(screened: Sequence[Screened], stem: str) -> None:
    """Write STEM.svg and STEM.png."""
    figure, axes = plt.subplots(1, 3, figsize=(13.5, 3.9))
    _trade_off(axes[0], screened)
    _by_delay(axes[1], screened, "kept", "kept (mean coefficient)")
    _by_delay(axes[2], screened, "agreement", "cosine with plain importance sampling")
    figure.subplots_adjust(wspace=0.5)
    figure.suptitle(_title(screened), x=0.06, ha="left", fontsize=11, y=1.0)
    total = screened[0][1][0]
    caption = (
        f"{total['groups']:,} recorded groups, {total['tokens']:,} tokens. Left: importance mass removed or added per "
        "response against the\nmean of (kept * advantage)^2; both take every response's gradient to have norm 1."
    )
    figure.text(0.06, -0.07, caption, fontsize=7.5, color="#444444", ha="left", va="top")
    save(figure, stem)
    plt.close(figure)


def _title(screened: Sequence[Screened]) -> str:
    """The measured answer: who gives up least and most of the importance mass."""
    gaps = {name: _bias(rows[0]) for name, rows in screened if name not in ("is", "reinforce")}
    if len(gaps) < 2:
        return "What each estimator makes of the same recorded data"
    least, most = min(gaps, key=gaps.__getitem__), max(gaps, key=gaps.__getitem__)
    return (
        f"Per response {label(least)} moves {gaps[least]:.2g} of importance mass, {label(most)} {gaps[most]:.2g}, "
        f"at a mean ratio of {screened[0][1][0]['ratio']:.2g}"
    )


def _bias(row: dict[str, Any]) -> float:
    return float(row["removed"] + row["added"])


def _trade_off(ax: Axes, screened: Sequence[Screened]) -> None:
    points = sorted((rows[0]["second_moment"], _bias(rows[0]), name) for name, rows in screened)
    logs = [float(np.log10(max(y, 1e-12))) for y, _, _ in points]
    span = max(logs[-1] - logs[0], 0.5)
    for (y, x, name), height in zip(points, spread(logs, 0.06 * span), strict=True):
        colour, marker = style(name)
        ax.plot(x, max(y, 1e-12), marker=marker, color=colour, markersize=6, linestyle="none")
        ax.annotate(label(name), (x, 10 ** logs[0]), xytext=(x + 0.05 * max(p[1] for p in points), 10**height),
                    textcoords="data", fontsize=7.5, color=colour, va="center", annotation_clip=False)  # fmt: skip
    ax.set_yscale("log")
    ax.set_ylim(10 ** (logs[0] - 0.15 * span), 10 ** (logs[-1] + 0.15 * span))
    ax.margins(x=0.2)
    ax.set_xlabel("bias proxy: |rho - kept| per response")
    ax.set_ylabel("second moment (log scale)")
    clean(ax)


def _by_delay(ax: Axes, screened: Sequence[Screened], column: str, title: str) -> None:
    bins = [row["delay"] for row in screened[0][1][1:]]
    x, ends = np.arange(len(bins)), {}
    for name, rows in screened:
        y = np.array([np.nan if row[column] is None else row[column] for row in rows[1:]], float)
        colour, marker = style(name)
        ax.plot(x, y, color=colour, marker=marker, markersize=3.5, linewidth=1.2)
        seen = np.flatnonzero(np.isfinite(y))
        if len(seen):
            ends[name] = (x[-1] + 0.15, float(y[seen[-1]]))
    ax.set_xticks(x, bins, fontsize=7.5, rotation=45)
    ax.set_xlabel("delay (updates)")
    ax.set_ylabel(title)
    low, high = ax.get_ylim()
    label_ends(ax, ends, gap=(high - low) * 0.055)
    clean(ax)
