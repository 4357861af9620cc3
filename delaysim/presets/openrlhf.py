"""OpenRLHF, asynchronous: whole batches in order, so many of them in generation or in the queue."""

from dataclasses import dataclass

from delaysim.clock.law import Law
from delaysim.errors import UserError
from delaysim.presets.base import knob, look_ahead, updates

SYSTEM, SOURCE = (
    "OpenRLHF",
    "OpenRLHF/OpenRLHF, openrlhf/trainer/ppo_trainer_async.py and openrlhf/cli/train_ppo_ray.py, 2026-08-13",
)
FIXED = ("--train.async_enable", "--rollout.batch_size {B}", "--rollout.n_samples_per_prompt {G}")
UNIT, COUNTS = "batches", "batch trained minus batches trained when it was started (it has no count of its own)"
DIFFERS = (
    "A batch is generated as a whole before the next one begins; here a slot that is free takes a group of the next.",
    "Without partial rollouts a weight sync waits until the batch in generation is finished; here it does not wait.",
)
staleness = updates


@dataclass
class Knobs:
    """Of train_ppo_ray."""

    name: str = "openrlhf"
    async_queue_size: int = knob(1, "--train.async_queue_size {}", "batches in generation or in the queue at most")
    partial_rollout_enable: bool = knob(
        False, "--train.partial_rollout_enable", "whether generation goes on through a weight sync"
    )


def in_flight(knobs: Knobs, B: int, G: int) -> str:
    """Whether weights are swapped during generation."""
    return "account" if knobs.partial_rollout_enable else "none"


def nearest(law: Law) -> Knobs:
    """Its look-ahead is the law's, from 1 on."""
    if (ahead := look_ahead(law, SYSTEM)) < 1:
        raise UserError(f"{SYSTEM} has a queue of 1 batch or more; for a delay of 0 leave --train.async_enable out")
    return Knobs(async_queue_size=ahead)
