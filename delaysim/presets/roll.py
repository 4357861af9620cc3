"""ROLL: so many batches ahead, the prompts of the oldest step first, and all of them."""

from dataclasses import dataclass
from math import ceil

from delaysim.clock.law import Law
from delaysim.presets.base import knob, look_ahead, updates

SYSTEM = "ROLL"
SOURCE = "alibaba/ROLL, roll/distributed/scheduler/generate_scheduler.py and roll/configs/base_config.py, 2026-08-19"
FIXED = ("rollout_batch_size: {B}", "num_return_sequences_in_group: {G}")
UNIT, COUNTS = "steps", "step trained minus step in which the prompt was started"
DIFFERS = (
    "A fraction of a batch ahead is rounded up to whole updates, as its own bound is.",
    "Prompts left over from steps past the bound are aborted; here none are left over, for the learner waits for them.",
    "Its agentic pipeline drops groups past the bound in place of waiting.",
)
staleness = updates


@dataclass
class Knobs:
    """The pipeline's."""

    name: str = "roll"
    async_generation_ratio: float = knob(0.0, "async_generation_ratio: {}", "batches generated ahead; 0 = synchronous")


def eta(knobs: Knobs, B: int, G: int) -> int:
    """Updates ahead, rounded up."""
    return ceil(knobs.async_generation_ratio)


def nearest(law: Law) -> Knobs:
    """Its look-ahead is the law's."""
    return Knobs(async_generation_ratio=float(look_ahead(law, SYSTEM)))
