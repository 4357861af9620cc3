"""Sums over groups, by estimator and delay bin; what a table's rows are made of."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch

from delaysim import measures
from delaysim.estimators.base import GroupBatch
from delaysim.estimators.interface import Estimator

BINS = 26
"""Delay 0, 1, 2-3, 4-7, ... up to 2^24."""
COUNTS = ("groups", "responses", "tokens", "mixed")
SUMS = (
    "ratio", "kept", "removed", "added", "intervention", "clip_fraction", "ess", "second_moment", "agreement",
)  # fmt: skip


PER = {"clip_fraction": "tokens", "ess": "groups", "agreement": "mixed"}
"""What a sum is divided by; the others by responses."""


@dataclass(frozen=True)
class PerGroup:
    """What one estimator did to each group of a mini-batch."""

    kept: torch.Tensor
    """[B, G] mean coefficient of each response."""
    total: torch.Tensor
    """[B, G] summed coefficient of each response."""
    columns: torch.Tensor
    """[B, COUNTS + SUMS]."""


def examine(batch: GroupBatch, estimator: Estimator, sizes: Sequence[int] = ()) -> PerGroup:
    """Ask an estimator for coefficients and measure them; `sizes` = groups of each mini-batch if there are several."""
    kappa = _coefficients(batch, estimator, sizes)
    kept, touched = measures.kept(batch, kappa), measures.touched(batch, kappa, estimator.level)
    agreement = measures.agreement(batch, kappa)
    gap = batch.rho - kept
    size = batch.rho.shape[1]
    columns = {
        "groups": torch.ones(len(kept)),
        "responses": torch.full((len(kept),), float(size)),
        "tokens": batch.lengths.sum(1),
        "mixed": agreement.isfinite(),
        "ratio": batch.rho.sum(1),
        "kept": kept.sum(1),
        "removed": gap.clamp(min=0).sum(1),
        "added": (-gap).clamp(min=0).sum(1),
        "intervention": (touched > 0).sum(1),
        "clip_fraction": touched.sum(1),
        "ess": measures.ess(kept.abs().clamp(min=1e-300).log()),
        "second_moment": measures.second_moment(batch, kept).sum(1),
        "agreement": agreement.nan_to_num(0.0),
    }
    return PerGroup(kept, kappa.sum(-1), torch.stack([columns[name].double() for name in (*COUNTS, *SUMS)], 1))


def _coefficients(batch: GroupBatch, estimator: Estimator, sizes: Sequence[int]) -> torch.Tensor:
    """All at once, but mini-batch by mini-batch where an estimator looks at the whole of one."""
    if estimator.scope != "batch" or len(sizes) < 2:
        return estimator.coefficients(batch)
    present = [f.name for f in fields(batch) if getattr(batch, f.name) is not None]
    parts = {name: getattr(batch, name).split(list(sizes)) for name in present}
    batches = (replace(batch, **{name: parts[name][i] for name in present}) for i in range(len(sizes)))
    return torch.cat([estimator.coefficients(part) for part in batches])


class Tally:
    """One estimator's sums by delay bin."""

    def __init__(self, estimator: Estimator) -> None:
        self.estimator = estimator
        self._sums = torch.zeros(BINS, len(COUNTS) + len(SUMS), dtype=torch.float64)

    def add(self, batch: GroupBatch, found: PerGroup | None = None) -> None:
        """Count a mini-batch in, examined before or now."""
        columns = (found or examine(batch, self.estimator)).columns
        self._sums.index_add_(0, bin_of(batch.delays), columns)

    def rows(self) -> list[dict[str, Any]]:
        """One row a delay bin that has groups, and first one over all of them."""
        used = [b for b in range(BINS) if self._sums[b, 0] > 0]
        return [_row("all", self._sums.sum(0)), *(_row(bin_name(b), self._sums[b]) for b in used)]


def bin_of(delays: torch.Tensor) -> torch.Tensor:
    """Index of each delay's bin: 0 for 0, else 1 + floor(log2)."""
    return torch.frexp(delays.double()).exponent.clamp(0, BINS - 1).long()


def bin_name(index: int) -> str:
    """A bin's delays: 0, 1, 2-3, 4-7, ..."""
    low, high = (0, 0) if index == 0 else (2 ** (index - 1), 2**index - 1)
    return f"{low}" if low == high else f"{low}-{high}"


def _row(name: str, sums: torch.Tensor) -> dict[str, Any]:
    value = dict(zip((*COUNTS, *SUMS), sums.tolist(), strict=True))
    counts = {key: int(value[key]) for key in COUNTS}
    return {"delay": name, **counts, **{key: _mean(value[key], value[PER.get(key, "responses")]) for key in SUMS}}


def _mean(total: float, count: float) -> float | None:
    return total / count if count else None
