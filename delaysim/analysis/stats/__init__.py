"""Statistics of runs over seeds and problems: pure functions on numpy arrays. No files, no torch."""

from delaysim.analysis.stats.crossed import crossed, over_seeds, paired_questions
from delaysim.analysis.stats.curves import auc
from delaysim.analysis.stats.estimate import Components, Estimate
from delaysim.analysis.stats.multiple import holm
from delaysim.metrics import item_weighted, macro, pass_at_k, set_mean

__all__ = [
    "Components",
    "Estimate",
    "auc",
    "crossed",
    "holm",
    "item_weighted",
    "macro",
    "over_seeds",
    "paired_questions",
    "pass_at_k",
    "set_mean",
]
