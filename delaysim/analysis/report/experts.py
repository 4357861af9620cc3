"""Mixtures of experts: where sampler, learner at launch and update use other experts, by delay and replay."""

import numpy as np

from delaysim.analysis.grid import Cell
from delaysim.analysis.report.blocks import Section, Table
from delaysim.analysis.report.detail import FLIPS, LATE
from delaysim.analysis.report.study import Study
from delaysim.analysis.report.words import DASH, short

HEADS = ("engine", "drift", "whole", "whole, tokens", "live", "mismatch (nats)")
NOTE = (
    f"Over the last {LATE:.0%} of the updates, means over seeds. Share of (token, layer) pairs with other experts: "
    "engine, between sampler and the learner's pass at launch; drift, between that pass and the update; whole, between "
    "sampler and update (tokens: with a flip in any layer); live, between what the update used and what its own router "
    "chose. Mismatch: mean difference of the log-probabilities of sampler and learner at launch, per token."
)


def expert_section(study: Study) -> Section | None:
    """One row per cell; None where no run compared experts."""
    cells = [(part, delay, level, cell) for part, delay, level, cell in study.cells() if _known(study, cell)]
    if not cells:
        return None
    rows = [
        (study.name(level), study.place(part, delay), *(_text(name, _late(study, cell, name)) for name in FLIPS))
        for part, delay, level, cell in cells
    ]
    table = Table(NOTE, (study.by, "cell", *HEADS), tuple(rows), left=2, copies=True)
    return Section("experts", "Experts", _title(study, [cell for *_, cell in cells]), [table])


def _title(study: Study, cells: list[Cell]) -> str:
    whole, live = ([_late(study, cell, f"flips_{kind}") for cell in cells] for kind in ("whole", "live"))
    if not np.isfinite(whole).any():
        return f"Experts used by the update and chosen by its router differ for up to {_percent(max(live))} of pairs"
    where = int(np.nanargmax(whole))
    part, delay, level, _ = next(c for c in study.cells() if c[3] is cells[where])
    place = f"{study.name(level)}, {study.place(part, delay)}"
    return f"Sampler and update use other experts for up to {_percent(whole[where])} of (token, layer) pairs ({place})"


def _known(study: Study, cell: Cell) -> bool:
    return bool(np.isfinite(_late(study, cell, "flips_live")))


def _late(study: Study, cell: Cell, measure: str) -> float:
    values = [detail.late[measure] for detail in study.of(cell)]
    return float(np.mean(values))


def _text(name: str, value: float) -> str:
    if not np.isfinite(value):
        return DASH
    return short(value) if name == "mismatch_mean" else _percent(value)


def _percent(value: float) -> str:
    return f"{value:.2%}" if value < 0.1 else f"{value:.0%}"
