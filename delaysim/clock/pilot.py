"""What a coupled law takes from a sample of groups that is never trained on: L_ref and the look-ahead."""

from dataclasses import replace
from math import floor
from statistics import fmean

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delaysim.clock.law import TICKS, Law


def reference_length(lengths: ArrayLike) -> float:
    """L_ref: mean response length [tokens] of the pilot's [groups, G] lengths."""
    table: NDArray[np.int64] = np.asarray(lengths)
    return float(table.mean())


def balanced_look_ahead(law: Law, lengths: ArrayLike) -> int:
    """Eta at which generation keeps one learner busy: mean group duration / C_update, to the nearest integer."""
    longest = np.asarray(lengths).max(axis=1).tolist()
    mean = fmean(law.duration(length) for length in longest) / TICKS
    return floor(mean / law.c_update + 0.5)


def settle(law: Law, lengths: ArrayLike, l_ref: float | None, look_ahead: int | None) -> Law:
    """`law` with what is None here taken from the pilot's lengths [groups, G]."""
    law = replace(law, l_ref=reference_length(lengths) if l_ref is None else l_ref)
    return replace(law, look_ahead=balanced_look_ahead(law, lengths) if look_ahead is None else look_ahead)
