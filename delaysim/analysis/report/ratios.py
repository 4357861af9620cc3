"""Importance ratios and what the losses made of them, by delay."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from delaysim.analysis.grid import Cell, Level
from delaysim.analysis.report.blocks import Block, Figure, Panel, Section, Table, folded
from delaysim.analysis.report.colours import MUTED
from delaysim.analysis.report.detail import LATE, POINTS
from delaysim.analysis.report.drawing import DelayAxis, draw, label_lines, room
from delaysim.analysis.report.study import NAMES, Slice, Study
from delaysim.analysis.report.words import short

SHOWN = {
    "ess": "effective share of a mini-batch (ESS)",
    "ratio_max": "largest ratio in a mini-batch",
    "kept": "kept: mean coefficient",
    "removed": "removed importance mass",
    "intervention": "share of responses intervened on",
    "hill": "Hill's tail index",
}
LOG = ("ratio_max",)
SHARES = ("ess", "intervention")


def ratio_section(study: Study) -> Section:
    """Small panels, one per measure."""
    blocks: list[Block] = []
    part = study.slices[0]
    numeric = len(study.delays) > 1 and all(isinstance(delay, int | float) for delay in study.delays)
    caption = (
        f"Over the last {LATE:.0%} of the updates, where a fixed delay is at its full size: means over seeds, the "
        "largest ratio as a median over updates; faint: every seed. "
    )
    if numeric:
        panels = [_panel(study, part, measure) for measure in SHOWN if _known(study, measure)]
        blocks.append(Figure(tuple(panels), caption + (f"Drawn for {part.name}." if part.at else "")))
    else:
        blocks.append(_over_updates(study, part))
    blocks += _by_realised(study, part)
    blocks.append(folded(_table(study)))
    return Section("ratios", "Ratios", _title(study, part), blocks)


def _over_updates(study: Study, part: Slice) -> Figure:
    """Where there is one delay: how the measures go on within a run."""
    cells = part.cells[study.delays[-1]]
    known = [name for name in SHOWN if any(d.series[name].size for cell in cells.values() for d in study.of(cell))]
    panels = tuple(_update_panel(study, cells, measure) for measure in known)
    return Figure(
        panels, f"Means over {POINTS} stretches of the run and over seeds, {study.place(part, study.delays[-1])}."
    )


def _update_panel(study: Study, cells: Mapping[Level, Cell], measure: str) -> Panel:
    names = [study.name(level) for level in cells]
    return draw(lambda ax: _paint_updates(ax, study, cells, measure), right=room(names), title=SHOWN[measure])


def _paint_updates(ax: Axes, study: Study, cells: Mapping[Level, Cell], measure: str) -> str:
    ends, words = [], []
    for level, cell in cells.items():
        series = [s for s in (detail.series[measure] for detail in study.of(cell)) if s.size]
        if not series:
            continue
        points = min(s.shape[1] for s in series)
        x, y = np.mean([s[:, :points] for s in series], axis=0)
        ax.plot(x, y, color=study.look(level)[0], linewidth=1.5)
        ends.append((study.name(level), float(x[-1]), float(y[-1]), study.look(level)[0]))
        words.append(f"{study.name(level)} {short(y[0])} to {short(y[-1])}")
    _scale(ax, measure)
    ax.set_xlim(left=0)
    ax.set_xlabel("learner updates")
    label_lines(ax, ends)
    return f"{SHOWN[measure]} against updates. {'; '.join(words)}."


def _title(study: Study, part: Slice) -> str:
    delay = study.delays[-1]
    cells = part.cells.get(delay, {})
    rate = {level: _late(study, cell, "intervention") for level, cell in cells.items()}
    ess = [v for v in (_late(study, cell, "ess") for cell in cells.values()) if np.isfinite(v)]
    where = study.at(delay)
    if not ess:
        return "Importance ratios by delay"
    text = f"At {where} the effective share of a mini-batch is {min(ess):.2f}" + (
        f" to {max(ess):.2f}" if max(ess) - min(ess) >= 0.005 else "")  # fmt: skip
    known = {level: r for level, r in rate.items() if np.isfinite(r)}
    if known and max(known.values()) - min(known.values()) >= 0.005:
        most, least = max(known, key=known.__getitem__), min(known, key=known.__getitem__)
        text += f"; {study.name(most)} intervenes on {known[most]:.0%} of responses"
        text += f", {study.name(least)} on {known[least]:.0%}"
    return text


def _late(study: Study, cell: Cell, measure: str) -> float:
    return _average([detail.late[measure] for detail in study.of(cell)])


def _average(values: Sequence[float]) -> float:
    known = [v for v in values if np.isfinite(v)]
    return float(np.mean(known)) if known else float("nan")


def _known(study: Study, measure: str) -> bool:
    return any(np.isfinite(detail.late[measure]) for _, _, _, cell in study.cells() for detail in study.of(cell))


def _panel(study: Study, part: Slice, measure: str) -> Panel:
    names = [study.name(level) for level in study.levels]
    return draw(lambda ax: _paint(ax, study, part, measure), right=room(names), title=SHOWN[measure])


def _paint(ax: Axes, study: Study, part: Slice, measure: str) -> str:
    axis = DelayAxis([float(delay) for delay in part.cells])
    ends, words = [], []
    for level in study.levels:
        found = [(delay, cells[level]) for delay, cells in part.cells.items() if level in cells]
        x, y = [axis.at(float(d)) for d, _ in found], [_late(study, cell, measure) for _, cell in found]
        if not np.isfinite(y).any():
            continue
        colour, marker = study.look(level)
        for at, (_, cell) in zip(x, found, strict=True):
            each = [detail.late[measure] for detail in study.of(cell)]
            if len(each) > 1:
                ax.plot([at] * len(each), each, color=colour, alpha=0.3, marker=".", markersize=4, linestyle="none")
        ax.plot(x, y, color=colour, marker=marker, markersize=4, linewidth=1.4)
        last = int(np.flatnonzero(np.isfinite(y))[-1])
        ends.append((study.name(level), x[last], y[last], colour))
        words.append(f"{study.name(level)} {short(y[0])} to {short(y[-1])}")
    _scale(ax, measure)
    axis.dress(ax, NAMES.get(study.over, study.over))
    label_lines(ax, ends)
    return f"{SHOWN[measure]} against {study.over}. {'; '.join(words)}."


def _scale(ax: Axes, measure: str) -> None:
    if measure in LOG:
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter(lambda value, _: short(value))
        ax.yaxis.set_major_locator(LogLocator(subs=_subs(ax)))
        ax.minorticks_off()
        ax.axhline(1, color=MUTED, linewidth=0.7)
    elif measure in SHARES:
        ax.set_ylim(-0.03, 1.05)
    else:
        ax.set_ylim(bottom=min(0, ax.get_ylim()[0]))


def _subs(ax: Axes) -> tuple[float, ...]:
    """Ticks of each decade, fewer where there are many decades."""
    low, high = ax.get_ylim()
    return (1, 1.5, 2, 3, 5, 7) if high < 4 * low else (1, 2, 5) if high < 200 * low else (1,)


def _table(study: Study) -> Table:
    rows = [
        (study.name(level), study.place(part, delay),
         *(short(_late(study, cell, measure)) for measure in SHOWN),
         short(_average([d.whole["saturated"] for d in study.of(cell)])),
         short(_average([d.late["entropy"] for d in study.of(cell)])))
        for part, delay, level, cell in study.cells()
    ]  # fmt: skip
    head = (study.by, "cell", "ESS", "largest ratio", "kept", "removed", "intervention", "Hill", "saturated", "entropy")
    note = (
        f"Over the last {LATE:.0%} of the updates, means over seeds; saturated: tokens of the whole run whose "
        "coefficient stood at the bound e^30; entropy in nats."
    )
    return Table(note, head, tuple(rows), left=2)


def _by_realised(study: Study, part: Slice) -> list[Block]:
    """Where delays differ within a run: the same by the delay of the group."""
    delay = next(reversed(part.cells))
    cells = {
        level: cell for level, cell in part.cells[delay].items() if any(d.by_delay is not None for d in study.of(cell))
    }
    if not cells:
        return []
    names = [study.name(level) for level in cells]
    panels = tuple(
        _bins_panel(study, cells, measure, names) for measure in ("ess", "ratio_max", "kept", "intervention")
    )
    where = study.place(part, delay)
    return [
        Figure(
            panels,
            f"The same by the delay each group came to ({where}): bins 0, 1, 2-3, 4-7, ...; groups pooled over seeds.",
        )
    ]


def _bins_panel(study: Study, cells: Mapping[Level, Cell], measure: str, names: Sequence[str]) -> Panel:
    return draw(lambda ax: _paint_bins(ax, study, cells, measure), right=room(names), title=SHOWN[measure])


def _paint_bins(ax: Axes, study: Study, cells: Mapping[Level, Cell], measure: str) -> str:
    ends, words = [], []
    for level, cell in cells.items():
        bins = _pooled_bins(study, cell, measure)
        colour, marker = study.look(level)
        x, y = np.arange(len(bins)), np.array([v for _, v in bins])
        ax.plot(x, y, color=colour, marker=marker, markersize=4, linewidth=1.4)
        ends.append((study.name(level), float(x[-1]), float(y[-1]), colour))
        words.append(f"{study.name(level)} {short(y[0])} to {short(y[-1])}")
    longest = max((_pooled_bins(study, cell, measure) for cell in cells.values()), key=len)
    step = max(1, len(longest) // 6)
    ax.set_xticks(range(0, len(longest), step), [f"{low:g}" for low, _ in longest][::step])
    _scale(ax, measure)
    ax.set_xlabel("delay from (updates)")
    label_lines(ax, ends)
    return f"{SHOWN[measure]} by realised delay. {'; '.join(words)}."


def _pooled_bins(study: Study, cell: Cell, measure: str) -> list[tuple[int, float]]:
    sums: dict[int, list[float]] = {}
    for detail in study.of(cell):
        if detail.by_delay is not None:
            for low, row in detail.by_delay.iterrows():
                total = sums.setdefault(int(low), [0.0, 0.0])  # type: ignore[call-overload]
                total[0] += row[measure] * row["groups"]
                total[1] += row["groups"]
    return [(low, value / n) for low, (value, n) in sorted(sums.items())]
