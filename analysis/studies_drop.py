"""What ways to drop groups cost, from a study's committed file: accuracy beside what they did to the lengths."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from delaysim.analysis.grid import Cell
from delaysim.analysis.plots import BASE, STYLES, clean, save, wrapped
from delaysim.analysis.report.study import Study
from delaysim.analysis.stats import crossed

Row = dict[str, str]
NONE = "none"


def answer(study: Study, rows: list[Row]) -> str:
    """The measured answer, in one sentence."""
    cells = policies(study)
    said = [
        f"{study.name(drop)} {100 * _lost(cell, cells[NONE]):+.0f} points (lengths "
        f"{100 * (_mean(rows, drop, 'ratio') - 1):+.0f} %)"
        for drop, cell in cells.items()
        if drop != NONE
    ]
    return f"Against no drop: {', '.join(said)}".replace("-", "\u2212")


def policies(study: Study) -> dict[str, Cell]:
    """The cell of each drop policy."""
    return {str(level): cell for _, _, level, cell in study.cells()}


def draw(study: Study, rows: list[Row], stem: Path) -> None:
    """Final accuracy by policy; beneath each, what it did."""
    cells = policies(study)
    figure, ax = plt.subplots(figsize=(6.4, 3.8))
    for place, (cell, (colour, marker)) in enumerate(zip(cells.values(), STYLES.values(), strict=False)):
        found = crossed(cell.table())
        ax.plot([place] * len(cell.runs), [run.final for run in cell.runs.values()], marker, color=colour, alpha=0.3,
                markersize=4, markeredgewidth=0)  # fmt: skip
        ax.vlines(place, max(found.low, 0), min(found.high, 1), color=colour, linewidth=1)
        ax.plot(place, found.mean, marker, color=colour, markersize=6)
        ax.annotate(f"{found.mean:.2f}", (place, found.mean), xytext=(8, 0), textcoords="offset points", fontsize=8,
                    color=colour, va="center")  # fmt: skip
    ax.axhline(study.base, **BASE)
    ax.annotate("base", (1, study.base), xycoords=("axes fraction", "data"), fontsize=8, color="#666666", ha="right",
                va="bottom")  # fmt: skip
    ax.set_xticks(range(len(cells)), [_tick(study, rows, drop) for drop in cells], fontsize=8)
    ax.set_xlim(-0.5, len(cells) - 0.4)
    ax.set_ylim(0, 1.02)
    ax.set_ylabel("final pass@1")
    clean(ax)
    ax.set_title(wrapped(answer(study, rows)), loc="left", fontsize=10)
    seeds = ", ".join(map(str, study.seeds))
    caption = (
        f"Tiny default, GRPO, lam=1, C_gen=20, seeds {seeds}: faint single seeds, bars 95 % intervals over seeds\n"
    )
    figure.text(0.02, -0.12, f"{caption}and problems. Length: mean trained over mean generated, in the steady state.",
                fontsize=7.5, color="#444444")  # fmt: skip
    save(figure, str(stem))
    plt.close(figure)


def _tick(study: Study, rows: list[Row], drop: str) -> str:
    return (
        f"{study.name(drop)}\nlength {_mean(rows, drop, 'ratio'):.2f}\n"
        f"delay {_mean(rows, drop, 'delay_mean'):.0f}, max {_mean(rows, drop, 'delay_max'):.0f}"
    )


def _mean(rows: list[Row], drop: str, column: str) -> float:
    return float(np.mean([float(row[column]) for row in rows if row["drop"] == drop]))


def _lost(cell: Cell, other: Cell) -> float:
    return float((cell.table() - other.table()).mean())
