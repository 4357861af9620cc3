"""NeMo RL's sampler in_order: the batch meant for a step, trained at that step."""

from dataclasses import dataclass

from delaysim.clock.law import Law
from delaysim.presets.base import NEMO, NEMO_BATCH, NEMO_SWAPS, at_once, knob, look_ahead, unless, updates

SYSTEM, SOURCE = "NeMo RL, in_order", NEMO
FIXED = ("async_rl.sampler.name=in_order", *NEMO_BATCH)
UNIT, COUNTS = "weight versions", "version trained minus version at the start of generation"
DIFFERS = (
    "A batch has a target step and is only trained there, so every delay is the look-ahead once generation keeps up.",
    NEMO_SWAPS,
)
staleness = updates


@dataclass
class Knobs:
    """Of async_rl."""

    name: str = "nemo_in_order"
    max_lookahead_versions: int = knob(
        1, "async_rl.sampler.max_lookahead_versions={}", "batches that generation may run ahead"
    )
    max_inflight_prompts: int | None = knob(
        None, "async_rl.max_inflight_prompts={}", "groups in generation at once; null = num_prompts_per_step, here B"
    )


def nearest(law: Law) -> Knobs:
    """Its look-ahead is the law's."""
    return Knobs(
        max_lookahead_versions=look_ahead(law, SYSTEM), max_inflight_prompts=unless(law.groups_per_update, at_once(law))
    )
