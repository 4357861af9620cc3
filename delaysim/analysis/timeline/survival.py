"""What became of short and of long responses: the share trained on by length, trained beside generated."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from delaysim.analysis.plots import clean
from delaysim.analysis.report.words import share, short
from delaysim.analysis.timeline.frame import framed, place
from delaysim.analysis.timeline.record import Record
from delaysim.clock.bias import PARTS, Bias, bias, tilt
from delaysim.clock.ledger import FATES, STILL_THERE, TRAINED

LOOKS = {
    "trained": ("#0072B2", "trained on"),
    "never": ("#CCCCCC", "still out at the end"),
    "queue": ("#E69F00", "dropped from a long queue"),
    "age": ("#D55E00", "dropped as too old"),
    "aborted": ("#CC79A7", "aborted as too old"),
    "timeout": ("#7A2E00", "timed out"),
    "filtered": ("#009E73", "filtered: equal rewards"),
}
"""Colour and words for each fate."""


def draw(record: Record, stem: str) -> str:
    """Write STEM.svg and STEM.png. Returns the title."""
    lengths = record.generated
    fate = record.rows["fate"][: len(lengths)]
    found = bias(record.rows, lengths, record.law.look_ahead)
    figure, axes = plt.subplots(1, 2, figsize=(11.5, 3.8))
    place(figure)
    figure.subplots_adjust(wspace=0.2)
    _fates(axes[0], lengths, fate)
    _distributions(axes[1], lengths, lengths[fate == TRAINED], found)
    caption = (
        f"{record.name}. {lengths.size:,} responses of {len(lengths):,} groups generated, {len(record.publish):,} "
        "updates; a group's responses share its fate.\nLeft: each bar is a tenth of the responses generated, in order "
        "of length. Right: dashed lines are the means."
    )
    return framed(figure, _title(found), caption, stem)


def _title(found: Bias) -> str:
    run, steady = found.run, found.steady
    later = "" if steady is None else f" (steady state {steady.ratio:.3f})"
    low, high = run.survival[0], run.survival[-1]
    return (
        f"Mean length, trained on over generated: {run.ratio:.3f}{later}; "
        f"{share(high)} of the longest tenth are trained on, {share(low)} of the shortest"
    )


def shares(lengths: NDArray[np.int64], fate: NDArray[np.int8]) -> dict[str, NDArray[np.float64]]:
    """For each fate that occurs, its share of each tenth of the lengths; the shares of a tenth add up to 1."""
    names = [name for index, name in enumerate(FATES) if (fate == index).any()]
    found = {}
    for name in names:
        counted = np.where(fate == FATES.index(name), TRAINED, STILL_THERE)
        found[name] = np.array(tilt(lengths, counted).survival)
    return found


def _fates(ax: Axes, lengths: NDArray[np.int64], fate: NDArray[np.int8]) -> None:
    below = np.zeros(PARTS)
    for name, part in shares(lengths, fate).items():
        colour, label = LOOKS[name]
        ax.bar(np.arange(PARTS), part, bottom=below, width=0.9, color=colour, label=label)
        below += part
    everyone = float((fate == TRAINED).mean())
    ax.axhline(everyone, color="black", linewidth=0.9, linestyle=(0, (4, 2)), label="trained on, of all")
    edges = np.quantile(lengths, np.linspace(0, 1, PARTS + 1))
    ax.set_xticks(np.arange(PARTS + 1) - 0.5, [f"{edge:.0f}" for edge in edges], fontsize=8)
    ax.set_ylim(0, 1)
    ax.set_xlabel("length (tokens)")
    ax.set_ylabel("share of responses")
    clean(ax)
    handles, names = ax.get_legend_handles_labels()
    ax.legend(handles, names, fontsize=7.5, frameon=False, ncols=len(names), loc="lower left", bbox_to_anchor=(0, 1),
              borderaxespad=0.2, handlelength=1.2, columnspacing=1.2)  # fmt: skip


def _distributions(ax: Axes, generated: NDArray[np.int64], trained: NDArray[np.int64], found: Bias) -> None:
    for values, mean, colour, width in (
        (generated, found.run.generated, "#AAAAAA", 3.2),
        (trained, found.run.trained, LOOKS["trained"][0], 1.4),
    ):
        x, count = np.unique(values, return_counts=True)
        below = np.r_[0, count.cumsum() / values.size]
        ax.step(np.r_[x[0], x], below, where="post", color=colour, linewidth=width)
        ax.axvline(mean, color=colour, linewidth=0.8, linestyle=(0, (4, 2)))
    top = float(np.quantile(generated, 0.995))
    ax.set_xlim(0, 1.02 * top)
    ax.set_ylim(0, 1.02)
    lines = ((f"generated, mean {short(found.run.generated)}", "#777777", 0.16),
             (f"trained on, mean {short(found.run.trained)}", LOOKS["trained"][0], 0.1),
             (f"largest distance (KS) {found.run.ks:.3f}", "#222222", 0.04))  # fmt: skip
    for text, colour, height in lines:
        ax.text(0.98, height, text, transform=ax.transAxes, ha="right", fontsize=8, color=colour)
    ax.set_xlabel("length (tokens)")
    ax.set_ylabel("share of responses at most as long")
    clean(ax)
