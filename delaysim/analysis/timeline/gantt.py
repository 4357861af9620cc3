"""The Gantt chart: what each generation slot and the learner did, over stretches one can read."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from delaysim.analysis.report.words import listing, share
from delaysim.analysis.timeline.frame import framed, place
from delaysim.analysis.timeline.record import Record, Ticks
from delaysim.analysis.timeline.window import Window
from delaysim.clock import TICKS
from delaysim.clock.ledger import NEVER

ROWS = 48
"""Slots drawn, spread evenly where there are more."""
LINES = 60
"""Publishes in a window that are drawn as lines; more would be a grey field."""
INCHES, LEAST = 0.085, 2.2
"""Height of a row, and of all rows at least."""
MAP = plt.get_cmap("viridis_r")
"""Older is darker: it holds for colour-blind readers and in grey."""
NOT_TRAINED: dict[str, Any] = {"facecolor": "#D9D9D9", "edgecolor": "white"}
DROPPED: dict[str, Any] = {"facecolor": "white", "edgecolor": "#D55E00", "hatch": "//////"}
LEARNER, SYNC = "#333333", "#A0A0A0"


def draw(record: Record, views: Sequence[tuple[str, Window]], stem: str) -> str:
    """Write STEM.svg and STEM.png, a panel for each (name, window). Returns the title."""
    rows = _rows(record)
    size = 13 if len(views) > 1 else 10, max(INCHES * (len(rows) + 6), LEAST) + 1
    figure, axes = plt.subplots(1, len(views), figsize=size, squeeze=False, sharey=True)
    colours = ScalarMappable(_norm(record), MAP)
    for ax, (name, window) in zip(axes[0], views, strict=True):
        _panel(ax, record, rows, window, colours)
        time = "time (s)" if record.unit == "s" else "simulated time (units)"
        ax.set_xlabel(time + (f": {name}" if name else ""))
    axes[0, 0].set_ylabel("generation slot")
    _legend(figure, axes[0], record, colours)
    return framed(figure, _title(record), _caption(record, rows, views), stem)


def _rows(record: Record) -> Ticks:
    """The slots drawn."""
    slots = int(record.slot.max()) + 1
    return np.unique(np.linspace(0, slots - 1, min(slots, ROWS)).round().astype(np.int64))


def _norm(record: Record) -> Normalize:
    """Whole delays apart from each other where they are few, a scale to the 99th percentile where not."""
    delay = record.groups["delay"][record.trained]
    top = int(np.ceil(np.percentile(delay, 99)))
    return BoundaryNorm(np.arange(top + 2) - 0.5, MAP.N) if top <= 12 else Normalize(0, top)


def _panel(ax: Axes, record: Record, rows: Ticks, window: Window, colours: ScalarMappable) -> None:
    low, high = window.units
    groups = window.overlapping(record.groups["launch"], record.until)
    groups = groups[np.isin(record.slot[groups], rows)]
    place = np.searchsorted(rows, record.slot[groups])
    trained = record.trained[groups]
    dropped = record.groups["dropped"][groups] != NEVER
    _bars(ax, record, groups[trained], place[trained],
          facecolor=colours.to_rgba(record.groups["delay"][groups[trained]]), edgecolor="white")  # fmt: skip
    _bars(ax, record, groups[dropped], place[dropped], **DROPPED)
    out = ~trained & ~dropped
    _bars(ax, record, groups[out], place[out], **NOT_TRAINED)
    _learner(ax, record, window, len(rows))
    ax.set_xlim(low, high)
    ax.set_ylim(-0.8, len(rows) + 5.5)
    at = _ticks(len(rows))
    ax.set_yticks([*at, len(rows) + 3], [*(str(rows[i]) for i in at), "learner"], fontsize=7.5)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)


def _ticks(rows: int) -> list[int]:
    return list(range(0, rows, max(1, rows // 8)))


def _bars(ax: Axes, record: Record, groups: Ticks, place: Ticks, **look: Any) -> None:
    start, end = record.groups["launch"][groups] / TICKS, record.until[groups] / TICKS
    ax.barh(place, end - start, left=start, height=0.82, linewidth=0.4, **look)


def _learner(ax: Axes, record: Record, window: Window, rows: int) -> None:
    """A bar for each update and what the learner then waits for its weights; a publish is a line through all rows."""
    updates = window.overlapping(record.poll, record.publish)
    start, end = record.poll[updates] / TICKS, record.trained_until[updates] / TICKS
    wide = len(updates) > 0 and np.mean(end - start) > 0.008 * (window.end - window.start) / TICKS
    edge = "white" if wide else LEARNER
    ax.barh(np.full(len(updates), rows + 3.0), end - start, left=start, height=3, facecolor=LEARNER, edgecolor=edge,
            linewidth=0.4 if wide else 0.2)  # fmt: skip
    publish = record.publish[updates] / TICKS
    ax.barh(np.full(len(updates), rows + 3.0)[publish > end], (publish - end)[publish > end], left=end[publish > end],
            height=3, facecolor=SYNC)  # fmt: skip
    if len(updates) <= LINES:
        ax.vlines(publish, -0.8, rows + 1.2, color="#000000", linewidth=0.5, alpha=0.6)


def _legend(figure: Figure, axes: Any, record: Record, colours: ScalarMappable) -> None:
    """The delays' scale, and what the other bars are where there are any."""
    place(figure)
    box = axes[-1].get_position()
    bar = figure.colorbar(colours, cax=figure.add_axes((box.x1 + 0.012, box.y0, 0.012, box.height)))
    bar.set_label("delay when trained on (updates)", fontsize=8)
    bar.ax.tick_params(labelsize=7.5)
    if isinstance(colours.norm, BoundaryNorm):
        bar.set_ticks(range(len(colours.norm.boundaries) - 1))
        bar.minorticks_off()
    else:
        bar.ax.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    dropped = record.groups["dropped"] != NEVER
    handles = [Patch(facecolor=LEARNER, label="update")]
    if (record.trained_until < record.publish).any():
        handles.append(Patch(facecolor=SYNC, label="weight sync"))
    if (~record.trained & ~dropped).any():
        handles.append(Patch(**NOT_TRAINED, label="not trained on before the end"))
    if dropped.any():
        handles.append(Patch(**DROPPED, label=f"dropped ({', '.join(sorted(set(record.fate[dropped])))})"))
    axes[-1].legend(handles=handles, loc="lower right", bbox_to_anchor=(1, 1), ncols=len(handles), fontsize=7.5,
                    frameon=False, borderaxespad=0.2)  # fmt: skip


def _title(record: Record) -> str:
    slots = int(record.slot.max()) + 1
    waits = 1 - (record.publish - record.poll).sum() / record.stop
    parts = [
        f"trains {share(record.busy)} of the time",
        *([f"waits for groups {share(waits)}"] if waits > 0.005 else []),
    ]
    if (record.trained_until < record.publish).any():
        parts.insert(1, f"syncs weights {share(1 - record.busy - waits)}")
    return f"The learner {listing(parts)}; at most {slots:,} groups are generated at once"


def _caption(record: Record, rows: Ticks, views: Sequence[tuple[str, Window]]) -> str:
    slots = int(record.slot.max()) + 1
    which = f"{len(rows)} of {slots:,} slots, evenly spread" if len(rows) < slots else "All slots"
    few = all(len(window.overlapping(record.poll, record.publish)) <= LINES for _, window in views)
    lines = "; thin lines are publishes of weights" if few else ""
    return (
        f"{record.name}. {which}; a group takes the lowest slot free at its launch, a bar is its generation{lines}.\n"
        f"Shares and slots are of the whole run: {len(record):,} groups, {len(record.publish):,} updates, "
        f"{record.stop / TICKS:,.0f} {record.unit}."
    )
