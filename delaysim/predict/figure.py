"""Speed against delay: every cell of the grid, and the front that leaves only real choices."""

from collections.abc import Mapping, Sequence
from textwrap import wrap

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from delaysim.analysis.plots import SPARE, STYLES, clean, save, spread
from delaysim.predict.ask import Choice, best_splits, sentence

LOOKS = (*list(STYLES.values())[:6], *SPARE)
"""Colour and marker of the operations, in the order of the grid."""


def draw(choices: Sequence[Choice], caption: str, stem: str) -> None:
    """Write STEM.svg and STEM.png."""
    figure, ax = plt.subplots(figsize=(8.2, 4.8))
    names = list(dict.fromkeys(choice.prediction.cell.operation.name for choice in choices))
    looks = dict(zip(names, LOOKS * (1 + len(names) // len(LOOKS)), strict=False))
    for name, look in looks.items():
        _points(ax, [choice for choice in choices if choice.prediction.cell.operation.name == name], *look)
    _front(ax, [choice for choice in choices if choice.on_front])
    _label(ax, best_splits(choices), {name: colour for name, (colour, _) in looks.items()})
    ax.set_xscale("symlog", linthresh=1, linscale=0.5)
    ax.set_xlim(-0.25, 2 * max(1.0, *(choice.prediction.delay_mean for choice in choices)))
    ticks = [0, *(2**k for k in range(12) if 2**k <= ax.get_xlim()[1])]
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.minorticks_off()
    ax.set_ylim(0, 1.12 * max(choice.prediction.updates_per_hour for choice in choices))
    ax.set_xlabel("mean delay (updates)")
    ax.set_ylabel("updates per hour")
    clean(ax)
    figure.suptitle("\n".join(wrap(sentence(choices), 92)), x=0.06, ha="left", fontsize=10.5, y=0.98)
    figure.text(0.06, -0.01, caption, fontsize=7.5, color="#444444", ha="left", va="top")
    save(figure, stem)
    plt.close(figure)


def _points(ax: Axes, choices: Sequence[Choice], colour: str, marker: str) -> None:
    x = [choice.prediction.delay_mean for choice in choices]
    y = [choice.prediction.updates_per_hour for choice in choices]
    ax.plot(x, y, linestyle="none", marker=marker, color=colour, markersize=6, zorder=3)


def _front(ax: Axes, choices: Sequence[Choice]) -> None:
    """The front as a line behind its points."""
    ordered = sorted((choice.prediction.delay_mean, choice.prediction.updates_per_hour) for choice in choices)
    ax.step(*zip(*ordered, strict=True), where="post", color="#888888", linewidth=0.9)


def _label(ax: Axes, best: Sequence[Choice], colours: Mapping[str, str]) -> None:
    """Beside the fastest point of each operation its name and split, pushed apart."""
    ordered = sorted(best, key=lambda choice: choice.prediction.updates_per_hour)
    top = ordered[-1].prediction.updates_per_hour
    off = [0.025 * top if choice.on_front else -0.025 * top for choice in ordered]
    speeds = [choice.prediction.updates_per_hour for choice in ordered]
    heights = spread(sorted(y + by for y, by in zip(speeds, off, strict=True)), 0.05 * top)
    for choice, height in zip(ordered, heights, strict=True):
        one = choice.prediction
        name, x = one.cell.operation.name, one.delay_mean
        left = x >= 1
        ax.annotate(
            f"{name}, {one.cell.split}", (x, one.updates_per_hour), xytext=(x / 1.07 if left else x + 0.08, height),
            ha="right" if left else "left", va="center", fontsize=8, color=colours[name],
        )  # fmt: skip
