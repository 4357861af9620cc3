"""Delays that happened beside those asked for, and the lengths of responses made and trained on."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from delaysim.analysis.grid import Cell, Level
from delaysim.analysis.report.blocks import Figure, Panel, Section, Table, folded
from delaysim.analysis.report.curves import few
from delaysim.analysis.report.detail import Array
from delaysim.analysis.report.drawing import draw, label_lines, room
from delaysim.analysis.report.study import Slice, Study
from delaysim.analysis.report.words import count, number, share, short

ALL = "all"
"""In place of every level."""
APART = 0.01
"""Relative difference of two mean lengths that a title calls a difference."""


def delay_section(study: Study) -> Section:
    """Requested next to realised, by delay: its distribution and its moments."""
    places = [(part, delay) for part in study.slices for delay in part.cells]
    some = [(part, delay) for part, delay in places if _delayed(study, part, delay)] or places
    panels = tuple(_distribution(study, part, delay) for part, delay in few(some))
    caption = "Share of consumed groups with a delay of at most so many updates, warm-up included; seeds pooled."
    rows = [_row(study, part, delay, level, cell) for part, delay, level, cell in study.cells()]
    rows = merged(rows)
    head = (study.by, "asked", "mean", "steady", "p5", "p50", "p95", "max", "from the base", "never trained")
    table = Table(
        "Delay of consumed groups [updates], means over seeds. Steady: from update 2(eta+1) on. From the base: share "
        "of trained groups that the untrained policy made. Never trained: share of launches.",
        head, tuple(rows), left=2,
    )  # fmt: skip
    return Section("delays", "Delays", _title(study), [Figure(panels, caption), folded(table)])


def _title(study: Study) -> str:
    last = study.delays[-1]
    found = [run for run in study.runs if run.settings.get(study.over) == last]
    mean, base = (_known_mean([run.moments.get(name) for run in found]) for name in ("delay_mean", "version0_share"))
    text = f"Asked for {study.at(last)}, groups were {mean:.1f} updates old on average"
    return text + (f", {base:.0%} of them from the untrained policy" if base > 0.02 else "")


def _row(study: Study, part: Slice, delay: object, level: Level, cell: Cell) -> tuple[str, ...]:
    names = ("delay_mean", "delay_mean_steady", "delay_p5", "delay_p50", "delay_p95", "delay_max")
    values = [_mean_of(cell, name) for name in names]
    shares = [_mean_of(cell, name) for name in ("version0_share", "never_trained_share")]
    asked = study.place(part, delay)
    return study.name(level), asked, *(number(v, 1) for v in values), *map(share, shares)


def _mean_of(cell: Cell, name: str) -> float:
    return _known_mean([run.moments.get(name) for run in cell.runs.values()])


def _known_mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else float("nan")


def _delayed(study: Study, part: Slice, delay: object) -> bool:
    """Whether there is a distribution to draw."""
    return any(d > 0 for cell in part.cells[delay].values() for detail in study.of(cell) for d in detail.delays)


def merged(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Levels with the very same delays share a line: with a fixed delay the loss does not touch the clock."""
    names: dict[tuple[str, ...], list[str]] = {}
    for name, *rest in rows:
        names.setdefault(tuple(rest), []).append(name)
    everyone = {row[0] for row in rows}
    return [(ALL if len(who) == len(everyone) > 1 else ", ".join(who), *rest) for rest, who in names.items()]


def _distribution(study: Study, part: Slice, delay: object) -> Panel:
    title = study.place(part, delay)
    same = len({tuple(sorted(_pooled(study, cell).items())) for cell in part.cells[delay].values()}) == 1
    cells = dict(list(part.cells[delay].items())[:1]) if same else part.cells[delay]
    names = [] if same else [study.name(level) for level in cells]
    return draw(lambda ax: _paint_distribution(ax, study, cells, delay, same), right=room(names), title=title)


def _pooled(study: Study, cell: Cell) -> Counter[int]:
    return sum((Counter(detail.delays) for detail in study.of(cell)), Counter())


def _paint_distribution(ax: Axes, study: Study, cells: Mapping[Level, Cell], delay: object, same: bool) -> str:
    ends, words = [], []
    asked = float(delay) if study.over in ("D", "eta") and isinstance(delay, int | float) else None
    for level, cell in cells.items():
        if not (pooled := sorted(_pooled(study, cell).items())):
            continue
        x, n = np.array([d for d, _ in pooled]), np.array([c for _, c in pooled])
        colour = "#6a6b6c" if same else study.look(level)[0]
        x, below = np.r_[x[0], x], np.r_[0, n.cumsum() / n.sum()]
        ax.step(x, below, where="post", color=colour, linewidth=1.5)
        ends.append((study.name(level), float(x[-1]), 1.0, colour))
        who, half = "all" if same else study.name(level), x[below >= 0.5][0]
        words.append(f"{who}: half of the groups at {half:g} or less, largest {x[-1]:g}")
    if asked is not None:
        ax.axvline(asked, color="#010203", linewidth=0.8, linestyle=(0, (1, 2)))
    ax.set_ylim(0, 1.04)
    low, high = ax.get_xlim()
    ax.set_xlim(min(low, -0.5), max(high, 1.0))
    ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    ax.set_xlabel("delay (updates)" + ("; dotted: asked" if asked is not None else ""))
    if not same:
        label_lines(ax, ends)
    return f"Distribution of the realised delay. {'; '.join(words)}."


# lengths


def length_section(study: Study) -> Section:
    """Mean length of what was trained on beside what was generated at the same time."""
    places = [(part, delay) for part in study.slices for delay in part.cells]
    panels = tuple(_length_panel(study, part, delay) for part, delay in few(places, 4))
    rows = [_length_row(study, part, delay, level, cell) for part, delay, level, cell in study.cells()]
    caption = (
        "Mean length [tokens] of the responses trained on (solid, by consuming update) and generated (dotted, by the "
        "version that made them, trained on or not); means over seeds. A gap at equal version is a bias of the queue; "
        "a shift to the right is the delay."
    )
    head = (study.by, "cell", "trained on", "generated", "ratio", "ratio at equal version")
    note = "Over whole runs, means over seeds [tokens]; at equal version the delay itself makes no difference."
    table = Table(note, head, tuple(rows), left=2)
    return Section("lengths", "Lengths", _length_title(study), [Figure(panels, caption), folded(table)])


def _length_title(study: Study) -> str:
    """What the queue picks, apart from what delay alone does."""
    picks = [pick for _, _, _, cell in study.cells() if np.isfinite(pick := _selected(study, cell))]
    worst = max(picks, key=lambda pick: abs(pick - 1), default=1.0)
    if abs(worst - 1) < APART:
        return "At equal version, what is trained on is as long as what is generated"
    kind = "longer" if worst > 1 else "shorter"
    return f"At equal version, responses trained on are up to {abs(worst - 1):.0%} {kind} than those generated"


def _selected(study: Study, cell: Cell) -> float:
    return float(np.mean([detail.selected for detail in study.of(cell)]))


def _lengths(study: Study, cell: Cell) -> tuple[float, float]:
    """Mean over seeds of what was trained on, and of what was generated."""
    details = study.of(cell)
    return _mean_height([detail.trained for detail in details]), _mean_height([detail.generated for detail in details])


def _mean_height(series: Sequence[Array]) -> float:
    known = [s[1].mean() for s in series if s.size]
    return float(np.mean(known)) if known else float("nan")


def _length_row(study: Study, part: Slice, delay: object, level: Level, cell: Cell) -> tuple[str, ...]:
    trained, generated = _lengths(study, cell)
    where = study.place(part, delay)
    ratios = trained / generated, _selected(study, cell)
    return study.name(level), where, number(trained, 1), number(generated, 1), *map(number, ratios)


def _length_panel(study: Study, part: Slice, delay: object) -> Panel:
    title = study.place(part, delay)
    cells = part.cells[delay]
    names = [study.name(level) for level in cells]
    return draw(lambda ax: _paint_lengths(ax, study, cells), right=room(names), title=title)


def _paint_lengths(ax: Axes, study: Study, cells: Mapping[Level, Cell]) -> str:
    ends, words = [], []
    for level, cell in cells.items():
        colour = study.look(level)[0]
        for name, dash, width in (("trained", "-", 1.5), ("generated", (0, (1, 1.5)), 1.2)):
            series = [getattr(detail, name) for detail in study.of(cell)]
            series = [s for s in series if s.shape[1]]
            if not series:
                continue
            points = min(s.shape[1] for s in series)
            x, y = np.mean([s[:, :points] for s in series], axis=0)
            ax.plot(x, y, color=colour, linestyle=dash, linewidth=width)
            if name == "trained":
                ends.append((study.name(level), float(x[-1]), float(y[-1]), colour))
                words.append(f"{study.name(level)} ends at {short(y[-1])} tokens")
    ax.set_ylim(bottom=0)
    ax.set_xlim(left=0)
    ax.set_xlabel("update, version")
    ax.set_ylabel("tokens per response")
    label_lines(ax, ends)
    return (
        f"Length of responses trained on and generated. {'; '.join(words)}. {count(len(cells), 'line')} of each kind."
    )
