"""NeMo RL's sampler weight_fifo: the oldest weights first, and all groups of them."""

from dataclasses import dataclass

from delaysim.clock.law import Law
from delaysim.presets.base import NEMO, NEMO_BATCH, NEMO_SWAPS, at_once, knob, look_ahead, unless, updates

SYSTEM, SOURCE = "NeMo RL, weight_fifo", NEMO
FIXED = ("async_rl.sampler.name=weight_fifo", *NEMO_BATCH)
UNIT, COUNTS = "weight versions", "version trained minus version at the start of generation"
DIFFERS = (
    "Groups below the window would go; none ever is, for the learner waits for the oldest weights.",
    NEMO_SWAPS,
)
staleness = updates


@dataclass
class Knobs:
    """Of async_rl."""

    name: str = "nemo_weight_fifo"
    max_staleness_versions: int = knob(
        1, "async_rl.sampler.max_staleness_versions={}", "look-ahead, and oldest weights trained on [versions]"
    )
    max_inflight_prompts: int | None = knob(
        None, "async_rl.max_inflight_prompts={}", "groups in generation at once; null = num_prompts_per_step, here B"
    )


def nearest(law: Law) -> Knobs:
    """Its look-ahead is the law's."""
    return Knobs(
        max_staleness_versions=look_ahead(law, SYSTEM), max_inflight_prompts=unless(law.groups_per_update, at_once(law))
    )
