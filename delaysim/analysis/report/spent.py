"""What held generation, and what the learner did with its time."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from delaysim.analysis.report.blocks import Block, Figure, Section, Table, folded
from delaysim.analysis.report.colours import INK, RULE
from delaysim.analysis.report.curves import few
from delaysim.analysis.report.delays import ALL, merged
from delaysim.analysis.report.drawing import draw_wide, label_lines, room
from delaysim.analysis.report.study import Study
from delaysim.analysis.report.told import Pick, Told, told
from delaysim.analysis.report.words import count, listing, number

LEARNER = {"updating": "#0072B2", "syncing": "#E69F00", "waiting": RULE}
"""What the learner does, and its colour."""
BARS, BAR = 12, 22
"""In a figure at most, and the height of each [px]."""
HOLDS = {"look-ahead": "the look-ahead", "workers": "the workers", "slots": "the slots", "start": "the start"}


def time_section(study: Study) -> Section | None:
    """Binding constraints and the learner's time by cell; None where no run has an account of simulated time."""
    cells = told(study, "held")
    if not cells:
        return None
    blocks: list[Block] = [_figure(cells)] if len(cells) > 1 else []
    return Section("time", "Time", _title(cells), [*blocks, folded(_table(study, cells))])


def _held(name: str) -> Pick:
    return lambda account: account["held"].get(name, 0.0)


def _did(name: str) -> Pick:
    return lambda account: account["learner"][name]


def _filled(name: str) -> Pick:
    return lambda account: account["filled"][name]


def _shares(cell: Told) -> list[tuple[str, float]]:
    """What held generation, the longest first."""
    names = dict.fromkeys(name for account in cell.accounts for name in account["held"])
    return sorted(((name, cell.mean(_held(name))) for name in names), key=lambda found: -found[1])


# the answer


def _title(cells: Sequence[Told]) -> str:
    return f"Generation is held {_binding(cells)}; {_learner(cells)}"


def _binding(cells: Sequence[Told]) -> str:
    first = [_shares(cell)[0] for cell in cells]
    names = list(dict.fromkeys(name for name, _ in first))
    if len(names) > 1:
        return "by " + listing([f"{_by(name)} in {count(sum(n == name for n, _ in first), 'cell')}" for name in names])
    low, high = min(part for _, part in first), max(part for _, part in first)
    span = f"{low:.0%}" if f"{low:.0%}" == f"{high:.0%}" else f"{low:.0%} to {high:.0%}"
    return f"by {_by(names[0])} {span} of the time"


def _by(name: str) -> str:
    return HOLDS.get(name, name)


def _learner(cells: Sequence[Told]) -> str:
    waits = [(cell.mean(_did("waiting")), cell.called) for cell in cells]
    low, high = min(waits), max(waits)
    if len(cells) == 1 or f"{low[0]:.0%}" == f"{high[0]:.0%}":
        return f"the learner waits {low[0]:.0%} of it"
    return f"the learner waits {high[0]:.0%} of it with {high[1]}, {low[0]:.0%} with {low[1]}"


# table and figure


def _table(study: Study, cells: Sequence[Told]) -> Table:
    rows = [
        (*cell.row, *(f"{cell.mean(_did(name)):.1%}" for name in LEARNER),
         *(number(cell.mean(_filled(name)), 1) for name in ("generating", "scoring", "ready")),
         ", ".join(f"{name} {part:.1%}" for name, part in _shares(cell) if part >= 0.0005))
        for cell in cells
    ]  # fmt: skip
    head = (study.by, "cell", *LEARNER, "in generation", "being scored", "ready", "generation is held by")
    note = (
        "Shares of simulated time: the learner's add up to 100 %, and so do those of what keeps the next group from "
        "being launched. Groups in generation, being scored and ready to be trained on: means over time. Means over "
        "seeds."
    )
    return Table(note, head, tuple(merged(rows)), left=2, words=1)


Bar = tuple[str, tuple[float, ...]]
"""A name, and the learner's shares in the order of LEARNER."""


def _bars(cells: Sequence[Told]) -> list[Bar]:
    """One for each of the table's rows: cells of a place whose shares are the same stand together."""
    rows = merged([(*cell.row, *(f"{cell.mean(_did(name)):.3f}" for name in LEARNER)) for cell in cells])
    levels, places = ({cell.row[i] for cell in cells} for i in (0, 1))
    return [
        (_called(name if len(levels) > 1 else "", place if len(places) > 1 else ""), tuple(map(float, shares)))
        for name, place, *shares in rows
    ]


def _called(name: str, place: str) -> str:
    return place or name if not (name and place) or name == ALL else f"{name} at {place}"


def _figure(cells: Sequence[Told]) -> Figure:
    bars = _bars(cells)
    shown = few(bars, BARS)
    left = f" {len(shown)} of {count(len(bars), 'bar')}." if len(shown) < len(bars) else ""
    panel = draw_wide(lambda ax: _paint(ax, shown), room([name for name, _ in shown]), height=60 + BAR * len(shown))
    colours = "dark: updating; orange: syncing weights; pale: waiting for groups"
    return Figure((panel,), f"What the learner does with its simulated time ({colours}). Means over seeds.{left}")


def _paint(ax: Axes, bars: Sequence[Bar]) -> str:
    ends, words = [], []
    for row, (name, shares) in enumerate(bars):
        edges = np.cumsum([0.0, *shares])
        for colour, low, high in zip(LEARNER.values(), edges, edges[1:], strict=False):
            ax.barh(-row, high - low, left=low, height=0.6, color=colour, linewidth=0)
        ends.append((name, 1.0, float(-row), INK))
        words.append(f"{name}: " + ", ".join(f"{did} {part:.0%}" for did, part in zip(LEARNER, shares, strict=True)))
    ax.set_xlim(0, 1)
    ax.set_ylim(-len(bars) + 0.4, 0.6)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.xaxis.set_major_formatter(PercentFormatter(1.0))
    ax.set_xlabel("share of simulated time")
    label_lines(ax, ends)
    return f"The learner's time. {'; '.join(words)}."
