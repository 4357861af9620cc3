"""Tinker cookbook, asynchronous: no look-ahead; groups too old when they are taken go, their prompts come again."""

from dataclasses import dataclass

from delaysim.clock.law import Law
from delaysim.presets.base import knob, oldest, updates

SYSTEM, SOURCE = "Tinker cookbook", "thinking-machines-lab/tinker-cookbook, tinker_cookbook/rl/train.py, 2026-08-19"
FIXED = ("groups_per_batch={B}", "group_size={G}")
UNIT, COUNTS = "steps", "batch trained minus step of the sampling client at the start"
DIFFERS = (
    "Its documents describe pacing in place of drops (sampling_steps_ahead): clock.eta with clock.order=version here.",
    "Old groups go one by one as the trainer takes them; here all that are too old go when a mini-batch is there.",
)
staleness = updates


@dataclass
class Knobs:
    """The cookbook's AsyncConfig."""

    name: str = "tinker"
    max_steps_off_policy: int = knob(
        4, "max_steps_off_policy={}", "oldest group trained on [steps]; required there, 4 in its guide"
    )


def nearest(law: Law) -> Knobs:
    """It bounds the oldest delay."""
    return Knobs(max_steps_off_policy=oldest(law, SYSTEM))
