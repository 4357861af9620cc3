"""What the figures of a run have in common: a sentence above, a caption below, the same distances whatever the size."""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from delaysim.analysis.plots import save

LEFT, RIGHT, BOTTOM, TOP, BETWEEN = 0.65, 0.75, 0.5, 0.25, 0.35
"""Margins around the axes and the gap between two [inches]; titles and captions stand outside."""


def place(figure: Figure) -> None:
    """Put the axes at these distances."""
    width, height = figure.get_size_inches()
    figure.subplots_adjust(left=LEFT / width, right=1 - RIGHT / width, bottom=BOTTOM / height, top=1 - TOP / height,
                           wspace=len(figure.axes) * BETWEEN / width)  # fmt: skip


def framed(figure: Figure, title: str, caption: str, stem: str) -> str:
    """Add both, write STEM.svg and STEM.png, close the figure; returns the title."""
    width, height = figure.get_size_inches()
    left = 0.1 / width
    figure.text(left, 1 + 0.08 / height, title, fontsize=11, ha="left", va="bottom")
    figure.text(left, -0.02 / height, caption, fontsize=7.5, color="#444444", ha="left", va="top")
    save(figure, stem)
    plt.close(figure)
    return title
