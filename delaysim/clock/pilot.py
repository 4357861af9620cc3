"""What a law takes from a sample of groups that is never trained on: L_ref, the look-ahead, ranks of sizes."""

from dataclasses import replace
from math import floor
from statistics import fmean

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delaysim.clock.durations import STATS
from delaysim.clock.law import TICKS, Law

RANKED = ("exp", "rank")
"""Couplings that need the pilot's sizes themselves."""


def reference_length(lengths: ArrayLike) -> float:
    """L_ref: mean response length [tokens] of the pilot's [groups, G] lengths."""
    table: NDArray[np.int64] = np.asarray(lengths)
    return float(table.mean())


def sizes(lengths: ArrayLike, stat: str) -> list[float]:
    """Sizes of groups [tokens] from their [groups, G] lengths."""
    return [STATS[stat](row) for row in np.asarray(lengths).tolist()]


def balanced_look_ahead(law: Law, lengths: ArrayLike | None = None) -> int:
    """Eta at which generation keeps one learner busy: mean time to ready / time of an update, to the nearest integer.

    Without coupling no lengths are needed.
    """
    mean = law.c_gen if lengths is None else fmean(law.duration(size) for size in sizes(lengths, law.stat)) / TICKS
    waits = law.sync_time / law.sync_every if law.sync_mode == "blocking" else 0.0
    update = law.steps * law.c_update + waits
    return floor((mean + law.noise * law.c_gen + law.reward_lag) / update + 0.5)


def settle(law: Law, lengths: ArrayLike, l_ref: float | None, look_ahead: int | None) -> Law:
    """`law` with what is None here taken from the pilot's lengths [groups, G]; with stat sum, L_ref is a mean sum."""
    if l_ref is None:
        l_ref = reference_length(lengths) * (np.shape(lengths)[1] if law.stat == "sum" else 1)
    pilot = tuple(sorted(sizes(lengths, law.stat))) if law.coupling in RANKED else ()
    law = replace(law, l_ref=l_ref, pilot_sizes=pilot)
    return replace(law, look_ahead=balanced_look_ahead(law, lengths) if look_ahead is None else look_ahead)
