"""torchforge's GRPO: rollout threads that never stop, and a replay buffer sampled at random and cleared by age."""

from dataclasses import dataclass

from delaysim.clock.law import Law
from delaysim.presets.base import at_once, knob, oldest, updates

SYSTEM, SOURCE = "torchforge", "meta-pytorch/torchforge, src/forge/actors/replay_buffer.py and apps/grpo, 2025-11-15"
FIXED = ("local_batch_size: {R}", "group_size: {G}")
UNIT, COUNTS = "policy versions", "version trained minus version that generated"
DIFFERS = (
    "Responses are drawn from the buffer one by one, so a group can be split over updates; here groups are drawn.",
    "Nothing but age limits its buffer.",
)
staleness = updates


@dataclass
class Knobs:
    """Of apps/grpo."""

    name: str = "torchforge"
    off_by_n: int = knob(1, "off_by_n: {}", "oldest response trained on [versions]: the buffer's max_policy_age")
    rollout_threads: int = knob(1, "rollout_threads: {}", "groups in generation at once")


def nearest(law: Law) -> Knobs:
    """It bounds the oldest delay."""
    return Knobs(off_by_n=oldest(law, SYSTEM), rollout_threads=at_once(law))
