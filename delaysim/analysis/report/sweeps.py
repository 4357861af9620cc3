"""What else was swept: thresholds at equal strength, group size, learning rate."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from delaysim.analysis.grid import Cell, Level, ordered, spelled, varying
from delaysim.analysis.report.blocks import Block, Figure, Panel, Section
from delaysim.analysis.report.colours import MUTED
from delaysim.analysis.report.curves import few, limits
from delaysim.analysis.report.drawing import draw, label_lines, room
from delaysim.analysis.report.study import Study
from delaysim.analysis.report.words import count, number, points, ranges
from delaysim.analysis.stats import crossed

TITLES = {"eps": "Threshold", "G": "Group size", "lr": "Learning rate"}
Point = tuple[float, Level, Cell]
"""Value of the swept setting, what it belongs to, its runs."""


def sweep_sections(study: Study) -> list[Section]:
    """One section for each of TITLES that takes several values within a level, or is itself what is compared."""
    return [_section(study, key) for key in TITLES if key in study.loose or key == study.by]


def _section(study: Study, key: str) -> Section:
    figures: list[Block] = [_figure(study, key)]
    if key == "eps":
        figures.append(_strength_figure(study))
    return Section(f"sweep-{key}", TITLES[key], _title(study, key), figures)


def _points(study: Study, key: str, delay: object) -> dict[str, list[Point]]:
    """Lines of a panel: by level, and by what else is held."""
    lines: dict[str, list[Point]] = {}
    for part, d, level, cell in study.cells():
        run = next(iter(cell.runs.values()))
        value = run.settings.get(key)
        if d != delay or not isinstance(value, int | float):
            continue
        others = ", ".join(f"{k}={spelled(v)}" for k, v in part.at.items() if k not in (key, *_tied(study, key)))
        name = study.name(level) if study.by != key else study.name_of_estimator
        lines.setdefault(" ".join(filter(None, (name, others))), []).append((float(value), level, cell))
    return {name: sorted(found, key=lambda p: p[0]) for name, found in lines.items()}


def _tied(study: Study, key: str) -> tuple[str, ...]:
    """Settings that follow the swept one, as B follows G at an equal sample budget."""
    others = [other for other in varying(study.runs) if other not in (key, study.over, study.by)]
    pairs = {other: {(run.settings.get(key), run.settings.get(other)) for run in study.runs} for other in others}
    values = len({run.settings.get(key) for run in study.runs})
    return tuple(other for other, found in pairs.items() if len(found) == values)


def _title(study: Study, key: str) -> str:
    delay = study.delays[-1]
    spans = {name: [float(c.table().mean()) for _, _, c in found] for name, found in _points(study, key, delay).items()}
    spans = {name: ys for name, ys in spans.items() if len(ys) > 1}
    if not spans:
        return f"{TITLES[key]}: one value each"
    widest = max(spans, key=lambda name: max(spans[name]) - min(spans[name]))
    moved = f"{key} moves {widest} by {points(max(spans[widest]) - min(spans[widest]))} at {study.at(delay)}"
    return f"{moved}, the others no more" if len(spans) > 1 else moved


def _figure(study: Study, key: str) -> Figure:
    delays = few(sorted({d for _, d, _, _ in study.cells()}, key=ordered))
    panels = tuple(_panel(study, key, delay) for delay in delays)
    with_it = _held(study, key)
    caption = (
        f"Final pass@1 against {key}; bars: 95 % intervals, seeds {ranges(study.seeds)}; dashed: the base.{with_it}"
    )
    return Figure(panels, caption)


def _held(study: Study, key: str) -> str:
    """What else changes with the swept setting, or, of a group size, what does not."""
    if tied := _tied(study, key):
        return f" {', '.join(tied)} follows {key}: {_pairs(study, key, tied)}."
    return f" B={spelled(study.runs[0].settings['B'])} is held." if key == "G" else ""


def _pairs(study: Study, key: str, tied: Sequence[str]) -> str:
    found = sorted(
        {tuple(run.settings.get(k) for k in (key, *tied)) for run in study.runs}, key=lambda t: ordered(t[0])
    )
    return "; ".join(", ".join(f"{k}={spelled(v)}" for k, v in zip((key, *tied), pair, strict=True)) for pair in found)


def _panel(study: Study, key: str, delay: object) -> Panel:
    lines = _points(study, key, delay)
    return draw(lambda ax: _paint(ax, study, key, lines), right=room(list(lines)), title=study.at(delay))


def _paint(ax: Axes, study: Study, key: str, lines: dict[str, list[Point]]) -> str:
    ax.axhline(study.base, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))
    ends, words = [], []
    for name, found in lines.items():
        colour, marker = study.look(found[0][1])
        each = [crossed(cell.table()) for _, _, cell in found]
        x = [np.log2(value) if value > 0 else np.nan for value, _, _ in found]
        ax.vlines(x, [e.low for e in each], [e.high for e in each], color=colour, linewidth=1.1, alpha=0.8)
        ax.plot(x, [e.mean for e in each], color=colour, marker=marker, markersize=5, linewidth=1.5)
        ends.append((name, float(x[-1]), each[-1].mean, colour))
        words.append(
            f"{name}: " + ", ".join(f"{number(e.mean)} at {v:g}" for (v, _, _), e in zip(found, each, strict=True))
        )
    values = sorted({value for found in lines.values() for value, _, _ in found if value > 0})
    shown = few(values, 5)
    ax.set_xticks([np.log2(v) for v in shown], [f"{v:g}" for v in shown])
    ax.set_ylim(*limits([run.final for run in study.runs] + [study.base]))
    ax.set_xlabel(f"{key} (log scale)")
    label_lines(ax, ends)
    return f"Final accuracy against {key}. {'; '.join(words)}."


def _strength_figure(study: Study) -> Figure:
    """The same accuracies against how often the loss steps in: equal thresholds are not equal strength."""
    delays = few([d for d in study.delays if d != 0] or study.delays)
    panels = tuple(_strength_panel(study, delay) for delay in delays)
    runs = count(len(study.runs), "run")
    return Figure(panels, f"The same against the share of responses the loss intervened on, late in the run; {runs}. "
                          "Compare losses at equal strength, one above the other; small numbers: eps.")  # fmt: skip


def _strength_panel(study: Study, delay: object) -> Panel:
    lines = _points(study, "eps", delay)
    return draw(lambda ax: _paint_strength(ax, study, lines), right=room(list(lines)), title=study.at(delay))


def _paint_strength(ax: Axes, study: Study, lines: dict[str, list[Point]]) -> str:
    words = []
    for name, found in lines.items():
        colour, marker = study.look(found[0][1])
        x = [float(np.mean([d.late["intervention"] for d in study.of(cell)])) for _, _, cell in found]
        y = [float(cell.table().mean()) for _, _, cell in found]
        ax.plot(x, y, color=colour, marker=marker, markersize=5, linewidth=1.3)
        far = int(np.argmax(x))
        for i, (value, _, _) in enumerate(found):
            text = f"{name} {value:g}" if i == far else f"{value:g}"
            ax.annotate(text, (x[i], y[i]), xytext=(0, 7), textcoords="offset points", ha="center", fontsize=9,
                        color=colour)  # fmt: skip
        words.append(f"{name}: " + ", ".join(f"{b:.3f} at {a:.0%}" for a, b in zip(x, y, strict=True)))
    ax.set_xlim(left=min(-0.01, ax.get_xlim()[0]))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    ax.set_ylim(*limits([run.final for run in study.runs] + [study.base]))
    ax.set_xlabel("responses intervened on")
    return f"Final accuracy against intervention rate. {'; '.join(words)}."
