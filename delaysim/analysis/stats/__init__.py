"""Statistics of runs over seeds and problems: pure functions on numpy arrays. No files, no torch."""

from delaysim.analysis.stats.aggregate import iqm, probability_of_improvement
from delaysim.analysis.stats.curves import auc, delay_at, gain_kept, retention, share_of_gain, updates_to, value_at
from delaysim.analysis.stats.discordant import mcnemar_exact, net_se
from delaysim.analysis.stats.equivalence import equivalent, no_worse, tost
from delaysim.analysis.stats.estimates import Components, Estimate, estimate
from delaysim.analysis.stats.flips import max_t, sign_flip
from delaysim.analysis.stats.looks import Looks, Operation, look_level, operate, spend
from delaysim.analysis.stats.multiple import holm
from delaysim.analysis.stats.power import mde, power_of, seeds_for_width, seeds_needed
from delaysim.analysis.stats.resample import Interval, bootstrap, bootstrap_seeds, resampled_means
from delaysim.analysis.stats.sets import SideBySide, over_sets
from delaysim.analysis.stats.two_way import crossed, over_seeds, paired_questions
from delaysim.metrics import deduplicated, item_weighted, macro, pass_at_k, set_mean

__all__ = [
    "Components",
    "Estimate",
    "Interval",
    "Looks",
    "Operation",
    "SideBySide",
    "auc",
    "bootstrap",
    "bootstrap_seeds",
    "crossed",
    "deduplicated",
    "delay_at",
    "equivalent",
    "estimate",
    "gain_kept",
    "holm",
    "iqm",
    "item_weighted",
    "look_level",
    "macro",
    "max_t",
    "mcnemar_exact",
    "mde",
    "net_se",
    "no_worse",
    "operate",
    "over_seeds",
    "over_sets",
    "paired_questions",
    "pass_at_k",
    "power_of",
    "probability_of_improvement",
    "resampled_means",
    "retention",
    "seeds_for_width",
    "seeds_needed",
    "set_mean",
    "share_of_gain",
    "sign_flip",
    "spend",
    "tost",
    "updates_to",
    "value_at",
]
