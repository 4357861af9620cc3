"""Speed against delay: every cell of the grid, and the front that leaves only real choices."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from delaysim.analysis.plots import SPARE, STYLES, clean, save
from delaysim.predict.ask import Choice, sentence

LOOKS = (*list(STYLES.values())[:6], *SPARE)
"""Colour and marker of the operations, in the order of the grid."""


def draw(choices: Sequence[Choice], caption: str, stem: str) -> None:
    """Write STEM.svg and STEM.png."""
    figure, ax = plt.subplots(figsize=(8.2, 4.8))
    names = list(dict.fromkeys(choice.prediction.cell.operation.name for choice in choices))
    for name, (colour, marker) in zip(names, LOOKS * (1 + len(names) // len(LOOKS)), strict=False):
        _points(ax, [choice for choice in choices if choice.prediction.cell.operation.name == name], colour, marker)
    _front(ax, [choice for choice in choices if choice.on_front])
    ax.set_xscale("symlog", linthresh=1, linscale=0.5)
    ax.set_xlim(-0.25, 2 * max(1.0, *(choice.prediction.delay_mean for choice in choices)))
    ticks = [0, *(2**k for k in range(12) if 2**k <= ax.get_xlim()[1])]
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.minorticks_off()
    ax.set_ylim(0, 1.12 * max(choice.prediction.updates_per_hour for choice in choices))
    ax.set_xlabel("mean delay (updates)")
    ax.set_ylabel("updates per hour")
    ax.legend(names, frameon=False, fontsize=8, loc="lower right")
    clean(ax)
    figure.suptitle(sentence(choices), x=0.06, ha="left", fontsize=10.5, y=0.97)
    figure.text(0.06, -0.01, caption, fontsize=7.5, color="#444444", ha="left", va="top")
    save(figure, stem)
    plt.close(figure)


def _points(ax: Axes, choices: Sequence[Choice], colour: str, marker: str) -> None:
    x = [choice.prediction.delay_mean for choice in choices]
    y = [choice.prediction.updates_per_hour for choice in choices]
    ax.plot(x, y, linestyle="none", marker=marker, color=colour, markersize=6, zorder=3)


def _front(ax: Axes, choices: Sequence[Choice]) -> None:
    """The front as a line behind its points, each with its split."""
    ordered = sorted((c.prediction.delay_mean, c.prediction.updates_per_hour, c.prediction.cell.split) for c in choices)
    ax.step([x for x, _, _ in ordered], [y for _, y, _ in ordered], where="post", color="#888888", linewidth=0.9)
    for x, y, split in ordered:
        ax.annotate(split, (x, y), xytext=(0, 7), textcoords="offset points", fontsize=8, ha="center")
