"""How many tokens an update trains on."""

from delaysim.clock.lengths import KeyedLengths
from delaysim.predict.costs import Work

GROUPS = 2048
"""Groups drawn for a mean."""


def update_tokens(work: Work, seed: int) -> float:
    """Mean response tokens of an update, of lengths drawn as the clock draws them."""
    drawn = KeyedLengths(work.lengths, work.group_size, seed).table(GROUPS)
    return work.samples * float(drawn.mean())
