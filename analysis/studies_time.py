"""Accuracy against updates and against simulated time, from a study's committed file: what a delay costs and buys."""

from collections.abc import Iterator
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray
from scipy.stats import t as student

from delaysim.analysis.plots import BASE, clean, label, save, wrapped
from delaysim.analysis.report.blocks import Table

COLOURS = ("#440154", "#3b528b", "#21918c", "#5ec962", "#c8a800")
MARKERS = "osD^v"
LEVEL = 0.9
"""Accuracy whose time is told."""

Row = dict[str, str]
Curve = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
"""Updates, simulated time and accuracy at each evaluation."""


def curves(rows: list[Row], estimator: str, eta: str) -> list[Curve]:
    """Of each seed."""
    found = [row for row in rows if (row["estimator"], row["eta"]) == (estimator, eta)]
    names = ("updates", "times", "accuracy")
    return [tuple(np.array([float(x) for x in row[name].split()]) for name in names) for row in found]  # type: ignore[misc]


def etas(rows: list[Row]) -> list[str]:
    """Look-aheads in order, auto last."""
    return sorted({row["eta"] for row in rows}, key=lambda eta: (eta == "auto", float(eta) if eta != "auto" else 0))


def estimators(rows: list[Row]) -> list[str]:
    """Names in order."""
    return sorted({row["estimator"] for row in rows})


def horizon(rows: list[Row]) -> float:
    """Simulated time at which the slowest of the balanced runs ended."""
    return max(float(row["sim_time"]) for row in rows if row["eta"] == "auto")


def at_time(curve: Curve, time: float) -> float:
    """Accuracy at a simulated time, on the line between evaluations; the last one after the end."""
    return float(np.interp(time, curve[1], curve[2]))


def reached(curve: Curve, level: float) -> float:
    """Simulated time at which the accuracy first is at a level, on the line between evaluations; NaN if never."""
    _, times, values = curve
    above = np.flatnonzero(values >= level)
    if not len(above):
        return float("nan")
    i = int(above[0])
    if i == 0:
        return float(times[0])
    share = (level - values[i - 1]) / (values[i] - values[i - 1])
    return float(times[i - 1] + share * (times[i] - times[i - 1]))


def table(rows: list[Row]) -> Table:
    """Each cell at equal updates and at equal simulated time."""
    time = horizon(rows)
    found = [_line(rows, estimator, eta, time) for estimator in estimators(rows) for eta in etas(rows)]
    head = (
        "estimator", "eta", "mean delay", "time per update", "learner busy", "at equal updates",
        f"at time {time:,.0f}", f"time to {LEVEL:g}",
    )  # fmt: skip
    return Table(
        "Accuracy at update 240 and at the simulated time at which the balanced runs (auto) end: means over seeds with "
        "95 % t intervals over them. Time to an accuracy: means over seeds that reached it, on the line between "
        "evaluations.",
        head, tuple(found), left=2,
    )  # fmt: skip


def _line(rows: list[Row], estimator: str, eta: str, time: float) -> tuple[str, ...]:
    of = [row for row in rows if (row["estimator"], row["eta"]) == (estimator, eta)]
    each = curves(rows, estimator, eta)
    times = [reached(curve, LEVEL) for curve in each]
    known = [t for t in times if t == t]
    some = "" if len(known) == len(times) else f" ({len(known)} of {len(times)})"
    to = f"{np.mean(known):,.0f}{some}" if known else "-"
    per_update = np.mean([float(row["sim_time"]) / 240 for row in of])
    return (
        label(estimator), eta, f"{np.mean([float(row['delay_mean']) for row in of]):.1f}", f"{per_update:.3g}",
        f"{1 / per_update:.0%}", _mean([curve[2][-1] for curve in each]), _mean([at_time(c, time) for c in each]), to,
    )  # fmt: skip


def _mean(values: list[float]) -> str:
    if len(values) < 2:
        return f"{np.mean(values):.3f}"
    half = student.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):.3f} ±{half:.3f}"


def answer(rows: list[Row]) -> str:
    """The measured answer, in one sentence."""
    time, name = horizon(rows), estimators(rows)[0]
    now, sync = (np.mean([at_time(c, time) for c in curves(rows, name, eta)]) for eta in ("auto", "0"))
    end = [np.mean([c[2][-1] for c in curves(rows, name, eta)]) for eta in ("auto", "0")]
    return (
        f"By simulated time {time:,.0f} balanced asynchronous {label(name)} stands at {now:.2f}, synchronous at "
        f"{sync:.2f}; after as many updates {end[0]:.2f} and {end[1]:.2f}"
    )


def draw(rows: list[Row], stem: Path) -> None:
    """Two panels per estimator: against updates, against simulated time."""
    names = estimators(rows)
    figure, axes = plt.subplots(len(names), 2, figsize=(7.4, 2.7 * len(names)), sharey=True, squeeze=False)
    for name, (left, right) in zip(names, axes, strict=True):
        _panel(left, rows, name, 0)
        _panel(right, rows, name, 1)
        left.set_ylabel(f"{label(name)}: pass@1")
        right.set_xscale("log")
    axes[-1][0].set_xlabel("learner updates")
    axes[-1][1].set_xlabel("simulated time (units, log scale)")
    figure.suptitle(wrapped(answer(rows), 84), x=0.02, ha="left", fontsize=10)
    seeds = ", ".join(sorted({row["seed"] for row in rows}))
    caption = f"Tiny default, lam=1, C_gen=20, seeds {seeds}: faint single seeds, lines their means; dashed: the base."
    figure.text(0.02, -0.03, caption, fontsize=7.5, color="#444444")
    figure.tight_layout()
    save(figure, str(stem))
    plt.close(figure)


def _panel(ax: Axes, rows: list[Row], name: str, axis: int) -> None:
    for eta, colour, marker in _looks(rows):
        each = curves(rows, name, eta)
        start = 1 if axis else 0
        for curve in each:
            ax.plot(curve[axis][start:], curve[2][start:], color=colour, alpha=0.25, linewidth=0.7)
        x, y = (np.mean([curve[i][start:] for curve in each], axis=0) for i in (axis, 2))
        ax.plot(x, y, color=colour, marker=marker, markersize=3, linewidth=1.5, label=f"eta={eta}")
    ax.axhline(float(curves(rows, name, etas(rows)[0])[0][2][0]), **BASE)
    ax.set_ylim(0, 1.02)
    clean(ax)
    if not axis:
        ax.legend(fontsize=7.5, frameon=False, loc="lower right", ncols=3, bbox_to_anchor=(1.0, 0.02))


def _looks(rows: list[Row]) -> Iterator[tuple[str, str, str]]:
    return zip(etas(rows), COLOURS, MARKERS, strict=False)
