"""NeMo RL's sampler ready_first: AReaL's rule: any finished group, the first started first."""

from dataclasses import dataclass

from delaysim.clock.law import Law
from delaysim.presets.base import NEMO, NEMO_BATCH, NEMO_SWAPS, at_once, knob, look_ahead, unless, updates

SYSTEM, SOURCE = "NeMo RL, ready_first", NEMO
FIXED = ("async_rl.sampler.name=ready_first", *NEMO_BATCH)
UNIT, COUNTS = "weight versions", "version trained minus version at the start of generation"
DIFFERS = (
    "Stragglers older than the bound are trained on; so they are here.",
    NEMO_SWAPS,
)
staleness = updates


@dataclass
class Knobs:
    """Of async_rl."""

    name: str = "nemo_ready_first"
    max_staleness_versions: int = knob(
        1, "async_rl.sampler.max_staleness_versions={}", "batches that generation may run ahead"
    )
    max_inflight_prompts: int | None = knob(
        None, "async_rl.max_inflight_prompts={}", "groups in generation at once; null = num_prompts_per_step, here B"
    )


def nearest(law: Law) -> Knobs:
    """Its look-ahead is the law's."""
    return Knobs(
        max_staleness_versions=look_ahead(law, SYSTEM), max_inflight_prompts=unless(law.groups_per_update, at_once(law))
    )
