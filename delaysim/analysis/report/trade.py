"""What a delay buys: accuracy against the simulated time of an update."""

import numpy as np
from matplotlib.axes import Axes

from delaysim.analysis.grid import Cell
from delaysim.analysis.outcomes import TIMED
from delaysim.analysis.report.blocks import Figure, Section
from delaysim.analysis.report.colours import MUTED
from delaysim.analysis.report.curves import limits
from delaysim.analysis.report.drawing import draw_wide, label_lines, room
from delaysim.analysis.report.study import Slice, Study
from delaysim.analysis.report.words import listing


def trade_section(study: Study) -> Section | None:
    """Final accuracy against the simulated time of an update."""
    clocks = {tuple(run.settings.get(key) for key in TIMED) for run in study.runs}
    spans = [run.time_per_update for run in study.runs]
    if len(clocks) > 1 or max(spans) < 1.2 * min(spans) or len(study.delays) < 2:
        return None
    part = study.slices[-1] if len(study.slices) == 1 else study.slices[0]
    names = [study.name(level) for level in study.levels]
    fastest, slowest = min(spans), max(spans)
    title = f"Delay brings the simulated time of an update from {slowest:.3g} down to {fastest:.3g}"
    caption = (
        "Final accuracy against the simulated time of an update (log scale): right is slow and fresh, left fast "
        f"and stale. Points: means over seeds at {listing([study.at(d) for d in part.cells])}, from right to left."
    )
    panel = draw_wide(lambda ax: _paint_trade(ax, study, part), room(names), part.name if part.at else "")
    return Section("trade", "What delay buys", title, [Figure((panel,), caption)])


def _paint_trade(ax: Axes, study: Study, part: Slice) -> str:
    ax.axhline(study.base, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))
    ends, words = [], []
    for level in study.levels:
        found = [(delay, cells[level]) for delay, cells in part.cells.items() if level in cells]
        if not found:
            continue
        colour, marker = study.look(level)
        x = [np.mean([run.time_per_update for run in cell.runs.values()]) for _, cell in found]
        y = [mean_of(cell) for _, cell in found]
        ax.plot(x, y, color=colour, marker=marker, markersize=5, linewidth=1.4)
        ends.append((study.name(level), float(x[0]), y[0], colour))
        words.append(f"{study.name(level)}: " + ", ".join(f"{b:.3f} at {a:.3g}" for a, b in zip(x, y, strict=True)))
    ax.set_xscale("log")
    ticks = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
    low, high = ax.get_xlim()
    ax.set_xticks([t for t in ticks if low <= t <= high], [f"{t:g}" for t in ticks if low <= t <= high])
    ax.set_xticks([], minor=True)
    ax.set_ylim(*limits([run.final for run in study.runs] + [study.base]))
    ax.set_xlabel("simulated time of an update (units)")
    ax.set_ylabel("accuracy (pass@1)")
    label_lines(ax, ends)
    return f"Final accuracy against simulated time per update. {'; '.join(words)}."


def mean_of(cell: Cell) -> float:
    """Final accuracy of a cell."""
    return float(cell.table().mean())
