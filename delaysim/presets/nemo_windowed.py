"""NeMo RL's sampler windowed: no look-ahead; groups that leave the window of versions go."""

from dataclasses import dataclass

from delaysim.clock.law import Law
from delaysim.presets.base import NEMO, NEMO_BATCH, NEMO_SWAPS, at_once, knob, oldest, unless, updates

SYSTEM, SOURCE = "NeMo RL, windowed", NEMO
FIXED = ("async_rl.sampler.name=windowed", *NEMO_BATCH)
UNIT, COUNTS = "weight versions", "version trained minus version at the start of generation"
DIFFERS = (
    "max_buffered_rollouts also holds generation back; here only the window and max_inflight_prompts do.",
    NEMO_SWAPS,
)
staleness = updates


@dataclass
class Knobs:
    """Of async_rl."""

    name: str = "nemo_windowed"
    max_staleness_versions: int = knob(
        1, "async_rl.sampler.max_staleness_versions={}", "oldest weights trained on [versions]; older groups go"
    )
    sample_freshest_first: bool = knob(
        False, "async_rl.sampler.sample_freshest_first={}", "newest weights first, else the first started first"
    )
    max_inflight_prompts: int | None = knob(
        None, "async_rl.max_inflight_prompts={}", "groups in generation at once; null = num_prompts_per_step, here B"
    )


def order(knobs: Knobs, B: int, G: int) -> str:
    """The clock's order."""
    return "freshest" if knobs.sample_freshest_first else "submit"


def nearest(law: Law) -> Knobs:
    """It bounds the oldest delay."""
    return Knobs(
        max_staleness_versions=oldest(law, SYSTEM),
        sample_freshest_first=law.order == "freshest",
        max_inflight_prompts=unless(law.groups_per_update, at_once(law)),
    )
