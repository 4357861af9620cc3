"""Speed against delay: what a setting of the clock gains in updates and costs in staleness, whatever is learnt."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from delaysim.analysis.grid import spelled
from delaysim.analysis.outcomes import TIMED
from delaysim.analysis.report.blocks import Figure, Fold, Section, Table, folded
from delaysim.analysis.report.colours import MUTED
from delaysim.analysis.report.delays import merged
from delaysim.analysis.report.drawing import draw_wide, label_lines, room
from delaysim.analysis.report.study import Study
from delaysim.analysis.report.told import Told, told
from delaysim.analysis.report.words import number, short
from delaysim.pareto import front

ENOUGH = 0.95
"""Of the fastest speed: what makes so much with the least delay is the answer, as in a prediction."""
SEVERAL = 3
"""Delays that span such a factor are drawn by their logarithms."""
TICKS = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True)
class Point:
    """A cell by what it makes and what it costs, means over seeds."""

    told: Told
    speed: float
    """Updates in a unit of simulated time."""
    delay: float
    """Mean realised delay [updates], in the steady state where there is one."""
    on_front: bool = False
    """No other is as fast and as fresh, in two digits."""


def speed_section(study: Study) -> Section | None:
    """One point per cell; None where there are no two, or simulated times do not compare."""
    if len({tuple(run.settings.get(key) for key in TIMED) for run in study.runs}) > 1:
        return None
    points = _points(told(study, "held"))
    if len({_rounded(point) for point in points}) < 2:
        return None
    panel = draw_wide(lambda ax: _paint(ax, study, points), room(list(_lines(study, points))))
    numbers = f" Numbers: {study.over}." if len(study.delays) > 1 else ""
    log = " (log scale that shows 0)" if _wide(points) else ""
    caption = (
        f"Updates in a unit of simulated time against the mean realised delay{log}, one point per cell, means over "
        "seeds. Filled, joined by the line: the Pareto front, where no other cell is as fast and as fresh."
        f"{numbers}"
    )
    return Section(
        "speed", "Speed against delay", _title(study, points), [Figure((panel,), caption), _table(study, points)]
    )


def _points(cells: Sequence[Told]) -> list[Point]:
    found = []
    for cell in cells:
        speed = float(np.mean([1 / run.time_per_update for run in cell.cell.runs.values()]))
        found.append(Point(cell, speed, cell.mean(lambda account: account["delay"]["mean"])))
    marks = front([_rounded(point) for point in found])
    return [Point(p.told, p.speed, p.delay, mark) for p, mark in zip(found, marks, strict=True)]


def _rounded(point: Point) -> tuple[float, float]:
    """To what counts as a difference."""
    return float(f"{point.speed:.2g}"), float(f"{point.delay:.2g}")


def _title(study: Study, points: Sequence[Point]) -> str:
    """The freshest of the fast ones, beside the freshest of its line, or of all where it stands alone."""
    fastest = max(points, key=lambda point: point.speed)
    best = min((p for p in points if p.speed >= ENOUGH * fastest.speed), key=lambda p: p.delay)
    line = _lines(study, points)[_name(study, best)]
    fresh = min(line if len(line) > 1 else points, key=lambda point: (point.delay, -point.speed))
    gained = f"{short(best.speed / fresh.speed)} times the updates of {fresh.told.called} for a mean delay of "
    gained += f"{number(best.delay, 1)} in place of {number(fresh.delay, 1)}"
    if best is fresh:
        return f"{best.told.called} is the freshest, and nothing is 5 % faster"
    return f"{best.told.called} makes {gained}" + (
        "" if _rounded(best) == _rounded(fastest) else "; nothing is 5 % faster"
    )


def _table(study: Study, points: Sequence[Point]) -> Table | Fold:
    top = max(point.speed for point in points)
    rows = [
        (*p.told.row, short(p.speed), f"{p.speed / top:.0%}", number(p.delay, 1), "yes" if p.on_front else "no")
        for p in points
    ]
    head = (study.by, "cell", "updates per unit", "of the fastest", "mean delay", "on the front")
    note = "Delays of the steady state where there is one; cells alike in two digits are alike."
    return folded(Table(note, head, tuple(merged(rows)), left=2, words=1))


def _paint(ax: Axes, study: Study, points: Sequence[Point]) -> str:
    best = sorted((point for point in points if point.on_front), key=lambda point: point.delay)
    ax.plot([p.delay for p in best], [p.speed for p in best], color=MUTED, linewidth=1.0, linestyle=(0, (4, 3)))
    ends, words = [], []
    for name, found in _lines(study, points).items():
        colour, marker = study.look(found[0].told.level)
        for point in found:
            ax.plot(point.delay, point.speed, color=colour, marker=marker, markersize=6, linestyle="none",
                    markerfacecolor=colour if point.on_front else "none")  # fmt: skip
        ends.append((name, found[-1].delay, found[-1].speed, colour))
        words.append(f"{name}: " + ", ".join(f"{short(p.speed)} at a delay of {number(p.delay, 1)}" for p in found))
    _dress(ax, points)
    _name_delays(ax, study, points)
    label_lines(ax, [end for end in ends if end[0]])
    return f"Updates per unit of simulated time against the mean delay. {'; '.join(words)}."


def _lines(study: Study, points: Sequence[Point]) -> dict[str, list[Point]]:
    """Points by all that varies but the delay."""
    found: dict[str, list[Point]] = {}
    for point in points:
        found.setdefault(_name(study, point), []).append(point)
    return found


def _name(study: Study, point: Point) -> str:
    parts = [study.name(point.told.level)] if len(study.levels) > 1 else []
    return ", ".join([*parts, *([point.told.part.name] if point.told.part.at else [])])


def _dress(ax: Axes, points: Sequence[Point]) -> None:
    low, high = min(point.delay for point in points), max(point.delay for point in points)
    if _wide(points):
        ax.set_xscale("symlog", linthresh=1, linscale=0.6)
        shown = [tick for tick in TICKS if tick <= 1.3 * high]
        ax.set_xticks(shown, [str(tick) for tick in shown])
        ax.set_xticks([], minor=True)
        ax.set_xlim(-0.15, 1.2 * high + 0.15)
    else:
        pad = 0.1 * (high - low) + 0.2
        ax.set_xlim(low - pad, high + pad)
    ax.set_ylim(0, 1.18 * max(point.speed for point in points))
    ax.set_xlabel("mean realised delay (updates)")
    ax.set_ylabel("updates per unit of time")


def _wide(points: Sequence[Point]) -> bool:
    """Whether delays are of several sizes, so that their logarithms are drawn."""
    return max(point.delay for point in points) > SEVERAL * min(point.delay for point in points)


def _name_delays(ax: Axes, study: Study, points: Sequence[Point]) -> None:
    """The setting behind each point, once for all lines: their points of one setting are near one another."""
    if len(study.delays) < 2:
        return
    for delay in study.delays:
        top = max((point for point in points if point.told.delay == delay), key=lambda p: p.speed, default=None)
        if top is not None:
            ax.annotate(spelled(delay), (top.delay, top.speed), xytext=(-5, 5), textcoords="offset points",
                        ha="right", color=MUTED)  # fmt: skip
