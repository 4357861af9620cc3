"""Learning curves on four axes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from delaysim.analysis.grid import Cell, Level
from delaysim.analysis.outcomes import AXES, TIMED, Outcome
from delaysim.analysis.report.blocks import Figure, Panel, Section, Switch
from delaysim.analysis.report.colours import MUTED
from delaysim.analysis.report.drawing import draw, label_lines, room
from delaysim.analysis.report.study import Slice, Study
from delaysim.analysis.report.words import listing
from delaysim.analysis.stats import over_seeds, updates_to

Array = NDArray[np.float64]
FIGURES = 6
"""Panels in a figure; of more the first, the last and some between are drawn."""
FAINT = 8
"""Seeds drawn one by one."""
PIECES = 40
"""Points of a mean curve on an axis where seeds differ."""


def few(items: Sequence[Any], most: int = FIGURES) -> list[Any]:
    """The first, the last, and others evenly between."""
    if len(items) <= most:
        return list(items)
    return [items[i] for i in np.unique(np.linspace(0, len(items) - 1, most).round().astype(int))]


def limits(values: Sequence[float]) -> tuple[float, float]:
    """Of an axis of accuracies."""
    low, high = min(values), max(values)
    pad = max(0.08 * (high - low), 0.01)
    return max(-0.01, low - pad), min(1.015, high + pad)


def curve_section(study: Study) -> Section:
    """Learning curves on one of four axes."""
    options = tuple((AXES[axis], _curves(study, axis)) for axis in AXES if _comparable(study, axis))
    return Section("curves", "Learning curves", _curve_title(study), [Switch("axis", "Against", options)])


def _comparable(study: Study, axis: str) -> bool:
    """Simulated times of different clocks are not drawn over one another."""
    return axis != "sim_time" or len({tuple(run.settings.get(key) for key in TIMED[:2]) for run in study.runs}) == 1


def _curve_title(study: Study) -> str:
    run = study.runs[0]
    if len(study.runs) == 1:
        kind = "rises" if run.curve[-1] > run.curve[0] else "falls"
        return f"Accuracy {kind} from {run.curve[0]:.3f} to {run.curve[-1]:.3f} at the last evaluation"
    cells = study.slices[0].cells.get(study.delays[-1], {})
    means = {level: np.mean([run.curve for run in cell.runs.values()], axis=0) for level, cell in cells.items()}
    level_half = study.base + (max(float(curve.max()) for curve in means.values()) - study.base) / 2
    if level_half < study.base + 0.01:
        return "Nobody gains on the base"
    reached = {level: float(updates_to(curve, run_axis(cells[level]), level_half)) for level, curve in means.items()}
    parts = [
        f"{study.name(level)} {f'after {n:.0f} updates' if np.isfinite(n) else 'never'}"
        for level, n in _sorted(reached)
    ]
    return f"At {study.at(study.delays[-1])} accuracy reaches {level_half:.2f}: {listing(parts[:6])}"


def run_axis(cell: Cell) -> Array:
    """Updates at the evaluations of a cell's runs."""
    return next(iter(cell.runs.values())).axes["updates"]


def _sorted(reached: Mapping[Level, float]) -> list[tuple[Level, float]]:
    """The earliest first, never last."""
    return sorted(reached.items(), key=lambda item: (not np.isfinite(item[1]), item[1]))


def _curves(study: Study, axis: str) -> Figure:
    places = [(part, delay) for part in study.slices for delay in part.cells]
    shown = few(places)
    panels = tuple(_curve_panel(study, part, delay, axis) for part, delay in shown)
    left = f" {len(shown)} of {len(places)} panels." if len(shown) < len(places) else ""
    faint = f"{FAINT} of the seeds" if len(study.seeds) > FAINT else "every seed"
    band = f"bands: 95 % t intervals over seeds; faint: {faint}" if len(study.seeds) > 1 else "one seed"
    return Figure(panels, f"pass@1 against {AXES[axis]}; {band}; dashed: the base.{left}")


def _curve_panel(study: Study, part: Slice, delay: object, axis: str) -> Panel:
    cells = part.cells[delay]
    names = [study.name(level) for level in study.levels]
    title = study.place(part, delay)
    return draw(lambda ax: _paint_curves(ax, study, cells, axis), right=room(names), title=title)


def _paint_curves(ax: Axes, study: Study, cells: Mapping[Level, Cell], axis: str) -> str:
    ax.axhline(study.base, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))
    ends, words = [], []
    for level, cell in cells.items():
        colour, marker = study.look(level)
        runs = list(cell.runs.values())
        x, table = on_one_axis(runs, axis)
        _band(ax, x, table, runs, axis, colour)
        mean = table.mean(0)
        ax.plot(x, mean, color=colour, linewidth=1.5)
        ax.plot(x[-1:], mean[-1:], color=colour, marker=marker, markersize=4)
        ends.append((study.name(level), float(x[-1]), float(mean[-1]), colour))
        words.append(f"{study.name(level)} ends at {mean[-1]:.3f}")
    everything = [v for run in study.runs for v in (run.curve.min(), run.curve.max())]
    ax.set_ylim(*limits(everything))
    ax.set_xlim(left=0)
    ax.xaxis.set_major_locator(MaxNLocator(4))
    ax.xaxis.set_major_formatter(_thousands)
    ax.set_xlabel(AXES[axis])
    label_lines(ax, ends)
    return f"Accuracy against {AXES[axis]}. {'; '.join(words)}."


def _thousands(value: float, _: object) -> str:
    if abs(value) >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value / 1e3:g}k" if abs(value) >= 10_000 else f"{value:g}"


def on_one_axis(runs: Sequence[Outcome], axis: str) -> tuple[Array, Array]:
    """Curves of several seeds at the same places: as far as the shortest goes that went to its end.

    One that a number ended counts 0 from there on, as in every mean.
    """
    first = runs[0].axes[axis]
    if all(np.array_equal(run.axes[axis], first) for run in runs):
        return first, np.stack([run.curve for run in runs])
    whole = [run for run in runs if run.reached == run.settings["N"]] or runs
    x = np.linspace(0, min(run.total(axis) for run in whole), PIECES)
    return x, np.stack([np.interp(x, run.axes[axis], run.curve) for run in runs])


def _band(ax: Axes, x: Array, table: Array, runs: Sequence[Outcome], axis: str, colour: str) -> None:
    if len(runs) < 2:
        return
    for run in runs[:FAINT]:
        ax.plot(run.axes[axis], run.curve, color=colour, alpha=0.3, linewidth=0.6)
    each = [over_seeds(column) for column in table.T]
    low, high = (np.clip([getattr(e, end) for e in each], 0, 1) for end in ("low", "high"))
    ax.fill_between(x, low, high, color=colour, alpha=0.13, linewidth=0)
