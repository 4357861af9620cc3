"""Final accuracy against delay, cell by cell, and the runs that collapsed."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from delaysim.analysis.compare import SAME
from delaysim.analysis.grid import Cell, Level, spelled
from delaysim.analysis.report.answer import Answer
from delaysim.analysis.report.blocks import Block, Figure, Panel, Section, Table
from delaysim.analysis.report.colours import MUTED
from delaysim.analysis.report.curves import few, limits
from delaysim.analysis.report.drawing import DelayAxis, draw, draw_wide, label_lines, room
from delaysim.analysis.report.study import NAMES, Slice, Study
from delaysim.analysis.report.words import DASH, count, interval, listing, number, points, ranges
from delaysim.analysis.stats import crossed

NONE = 0.0005
"""A difference that three decimals do not show."""


def intervals(study: Study) -> str:
    """What the bars of a cell's mean cover."""
    return f"bars: 95 % intervals over {study.random}; faint: every seed"


def accuracy_section(answer: Answer) -> Section:
    """Accuracy against delay by estimator, and the table to copy."""
    study = answer.study
    blocks: list[Block] = []
    if len(study.delays) > 1 and all(isinstance(delay, int | float) for delay in study.delays):
        panels = [_delay_panel(study, part, len(study.slices)) for part in few(study.slices)]
        blocks.append(Figure(tuple(panels), _caption(study)))
    blocks.append(cell_table(answer))
    return Section("accuracy", "Accuracy", _title(study), blocks)


def _caption(study: Study) -> str:
    return (
        f"Final pass@1: mean of the last three evaluations, {len(study.runs[0].problems):,} held-out problems. "
        f"{count(len(study.runs), 'run')}, seeds {ranges(study.seeds)}; {intervals(study)}; dashed: the base, "
        f"{study.base:.3f}. Collapsed runs stay in every mean."
    )


def _title(study: Study) -> str:
    """Who loses most and least between the smallest and the largest delay."""
    part = study.slices[0]
    first, last = study.delays[0], study.delays[-1]
    ends = [part.cells.get(delay, {}) for delay in (first, last)]
    loss = {level: _mean(ends[1][level]) - _mean(ends[0][level]) for level in ends[0] if level in ends[1]}
    if len(study.delays) < 2 or not loss:
        return _ends(study, part, last)
    parts = [
        f"{study.name(level)} {_change(change)}{_doubt(ends, level)}"
        for level, change in sorted(loss.items(), key=lambda item: item[1])
    ]
    where = f" ({part.name})" if part.at else ""
    if len(parts) > 4:
        parts = [parts[0], parts[-1]]
    return f"From {study.at(first)} to {study.at(last)} {listing(parts)}{where}"


def _ends(study: Study, part: Slice, delay: object) -> str:
    """Where every level ends at the one delay, or the highest and the lowest of many."""
    means = sorted(((_mean(cell), level) for level, cell in part.cells[delay].items()), key=lambda one: -one[0])
    if len(means) > 4:
        means = [means[0], means[-1]]
    where = ", ".join(filter(None, (study.at(delay), part.name)))
    return f"At {where} {listing([f'{study.name(level)} ends at {mean:.3f}' for mean, level in means])}"


def _doubt(ends: Sequence[Mapping[Level, Cell]], level: Level) -> str:
    """Where seeds cannot tell the change from none."""
    before, after = (cells[level] for cells in ends)
    seeds = sorted(set(before.seeds) & set(after.seeds))
    if len(seeds) < 2:
        return ""
    change = crossed(after.table(seeds=seeds) - before.table(seeds=seeds))
    return " (not separable from 0)" if change.low <= 0 <= change.high and abs(change.mean) >= NONE else ""


def _change(change: float) -> str:
    if abs(change) < NONE:
        return "stays where it was"
    return f"{'gains' if change > 0 else 'loses'} {points(change)}"


def _mean(cell: Cell) -> float:
    return float(cell.table().mean())


def _delay_panel(study: Study, part: Slice, beside: int) -> Panel:
    names = [study.name(level) for level in study.levels]
    if beside > 1:
        return draw(lambda ax: _against_delay(ax, study, part), right=room(names), title=part.name)
    return draw_wide(lambda ax: _against_delay(ax, study, part), room(names))


def _against_delay(ax: Axes, study: Study, part: Slice) -> str:
    axis = DelayAxis([float(delay) for delay in part.cells])
    ax.axhline(study.base, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))
    ends, words = [], []
    for level in study.levels:
        found = {delay: cells[level] for delay, cells in part.cells.items() if level in cells}
        if found:
            ends.append(_level_line(ax, study, level, found, axis))
            said = ", ".join(f"{_mean(cell):.3f} at {spelled(delay)}" for delay, cell in found.items())
            words.append(f"{study.name(level)}: {said}")
    ax.set_ylim(*limits([run.final for run in study.runs] + [study.base]))
    axis.dress(ax, NAMES.get(study.over, study.over))
    ax.set_ylabel("accuracy (pass@1)")
    label_lines(ax, ends)
    return f"Final accuracy against {study.over}. {'; '.join(words)}. Base {study.base:.3f}."


def _level_line(
    ax: Axes, study: Study, level: Level, found: Mapping[float, Cell], axis: DelayAxis
) -> tuple[str, float, float, str]:
    colour, marker = study.look(level)
    nudge = (study.levels.index(level) - (len(study.levels) - 1) / 2) * 0.012 * axis._span
    x = [axis.at(float(delay)) + nudge for delay in found]
    each = [crossed(cell.table()) for cell in found.values()]
    for at, cell in zip(x, found.values(), strict=True):
        if len(cell.runs) > 1:
            ax.plot([at] * len(cell.runs), [run.final for run in cell.runs.values()], color=colour, alpha=0.35,
                    marker=marker, markersize=3, linestyle="none", markeredgewidth=0)  # fmt: skip
    ax.vlines(x, [e.low for e in each], [e.high for e in each], color=colour, linewidth=1.1, alpha=0.8)
    ax.plot(x, [e.mean for e in each], color=colour, marker=marker, markersize=5, linewidth=1.6)
    return study.name(level), x[-1], each[-1].mean, colour


def cell_table(answer: Answer) -> Table:
    """Every cell: mean and interval, the best of each delay marked, with what is not separable from it."""
    study = answer.study
    several = list(study.loose)
    rows = []
    for part in study.slices:
        for level in study.levels:
            held = [spelled(part.at[key]) for key in several]
            cells = [_cell_text(answer, part, delay, level) for delay in study.delays]
            if any(text != DASH for text in cells):
                rows.append((study.name(level), *held, *cells))
    seeds = "seeds " + ranges(study.seeds) if len(study.seeds) > 1 else f"one seed, {study.seeds[0]}: no ranking"
    caption = f"Final accuracy, 95 % intervals over {study.random}; {seeds}."
    if answer.ranked:
        caption += " *: best at its delay; °: not separable from the best."
    return Table(
        caption, (study.by, *several, *map(study.at, study.delays)), tuple(rows), 1 + len(several), copies=True
    )


def _cell_text(answer: Answer, part: Slice, delay: object, level: Level) -> str:
    cell = part.cells.get(delay, {}).get(level)
    if cell is None:
        return DASH
    text = interval(crossed(cell.table())) + _mark(answer, part, delay, level)
    return f"{text} ({cell.collapsed} of {len(cell.runs)} collapsed)" if cell.collapsed else text


def _mark(answer: Answer, part: Slice, delay: object, level: Level) -> str:
    at = {answer.study.over: delay, **part.at}
    cells = part.cells[delay]
    if len(cells) < 2 or not answer.ranked:
        return ""
    best = max(cells, key=lambda name: _mean(cells[name]))
    if level == best:
        return "*"
    pair = [c for c in answer.contrasts if dict(c.at) == at and {c.a, c.b} == {level, best}]
    if pair and pair[0].verdict == SAME:
        return "*"
    return "°" if pair and not pair[0].verdict.endswith("better") else ""


def collapse_section(study: Study) -> Section | None:
    """How many runs of each cell collapsed."""
    rows = [
        (study.name(level), study.place(part, delay), f"{cell.collapsed} of {len(cell.runs)}",
         ranges(seed for seed in cell.seeds if cell.runs[seed].collapsed),
         number(_mean(cell)))
        for part, delay, level, cell in study.cells() if cell.collapsed
    ]  # fmt: skip
    total = sum(run.collapsed for run in study.runs)
    if not rows:
        return None
    table = Table(
        "Cells with a run that fell below the base and stayed there, by the rule of its configuration, or met a number "
        " that is not finite. Their later evaluations count 0; they stay in every mean.",
        (study.by, "cell", "collapsed", "seeds", "mean accuracy"), tuple(rows), left=2,
    )  # fmt: skip
    return Section("collapses", "Collapses", f"{total} of {count(len(study.runs), 'run')} collapsed", [table])
