"""What theory promises the delays that happened, beside what was measured (docs/theory.md)."""

from collections.abc import Sequence

import numpy as np

from delaysim import theory
from delaysim.analysis.grid import Cell, Level
from delaysim.analysis.report.blocks import Section, Table, folded
from delaysim.analysis.report.study import Slice, Study
from delaysim.analysis.report.words import DASH, number, short, signed

BOUNDS = {"gmc": theory.gmc_constant, "tic": theory.tic_constant}
"""Losses whose removed mass the KL divergence bounds."""
HEAD = ("cell", "mean delay^4", "p", "rate N^-r", "free", "removed", "bound", "accuracy minus no delay")


def theory_section(study: Study) -> Section:
    """The growth exponent, the guaranteed rate, and removed mass against its bound, cell by cell."""
    rows = [(study.name(level), *_row(study, part, delay, level, cell)) for part, delay, level, cell in study.cells()]
    n = study.runs[0].settings["N"]
    caption = (
        f"Of the realised delays, means over seeds, N={n}. tau4 = mean delay^4 = N^p guarantees the rate N^-r, r = 1/2 "
        f"(free) up to tau4 = N^1.5 = {short(theory.free_fourth_moment(n))}; none: nothing is guaranteed. Removed: "
        "importance mass taken from a response; bound: what the measured KL(pi||mu) allows GMC and TIC at their "
        "threshold. The rates leave constants open: compare them, do not predict with them."
    )
    table = Table(caption, (study.by, *HEAD), tuple(rows), left=2)
    return Section("theory", "Theory", _title(study, n), [folded(table)])


def _title(study: Study, n: int) -> str:
    tau4 = max(detail.tau4 for detail in study.details_here)
    free = theory.free_delay(n)
    if tau4 <= theory.free_fourth_moment(n):
        return f"All delays are free in theory: below {free:.1f} updates at N={n} the rate stays N^-0.50"
    rate = theory.rate_exponent(theory.growth_exponent(tau4, n))
    worst = f"N^-{rate:.2f}" if rate else "no rate at all"
    return f"Theory calls delays up to {free:.1f} updates free at N={n}; the largest here guarantees {worst}"


def _row(study: Study, part: Slice, delay: object, level: Level, cell: Cell) -> Sequence[str]:
    details, runs = study.of(cell), [cell.runs[seed] for seed in cell.seeds]
    n = max(2, min(run.reached for run in runs))
    tau4 = float(np.mean([detail.tau4 for detail in details]))
    p = theory.growth_exponent(tau4, n)
    rate = theory.rate_exponent(p)
    kl, removed = (_mean([detail.whole[name] for detail in details]) for name in ("kl_pi_mu", "removed"))
    return (
        study.place(part, delay), short(tau4), number(p, 2) if tau4 else DASH,
        "none" if rate is None else f"{rate:.2f}", "yes" if tau4 <= theory.free_fourth_moment(n) else "no",
        short(removed), _bound(runs[0].settings, kl), _loss(part, level, cell),
    )  # fmt: skip


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if np.isfinite(value)]
    return float(np.mean(known)) if known else float("nan")


def _bound(settings: object, kl: float) -> str:
    name, eps = settings["estimator"], settings.get("eps")  # type: ignore[index,attr-defined]
    if name not in BOUNDS or not eps or not np.isfinite(kl):
        return DASH
    return short(theory.removed_bound(max(kl, 0.0), BOUNDS[name](eps)))


def _loss(part: Slice, level: Level, cell: Cell) -> str:
    base = part.cells.get(0, {}).get(level)
    if base is None or base is cell:
        return DASH
    seeds = sorted(set(cell.seeds) & set(base.seeds))
    if not seeds:
        return DASH
    return signed(float((cell.table(seeds=seeds) - base.table(seeds=seeds)).mean()))
