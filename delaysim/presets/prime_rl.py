"""prime-rl: as many episodes in flight as fit; groups past an age go, in flight and in the queue."""

from dataclasses import dataclass

from delaysim.clock.law import Law
from delaysim.presets.base import at_once, knob, oldest, updates

SYSTEM = "prime-rl"
SOURCE = "PrimeIntellect-ai/prime-rl, src/prime_rl/orchestrator and its configs, 2026-08-21"
FIXED = ("orchestrator.batch_size = {R}", "orchestrator.group_size = {G}")
UNIT, COUNTS = "steps", "(step - 1) minus oldest version in the rollout, with steps from 1"
DIFFERS = (
    "A batch is put together and shipped one step before it is trained on (TARGET_LAG = 1, no setting); here it is "
    "put together when the learner is free.",
    "Concurrency is adapted below max_inflight; here it is max_inflight.",
    "Weights are swapped during generation.",
)
staleness = updates


@dataclass
class Knobs:
    """The orchestrator's."""

    name: str = "prime_rl"
    max_off_policy_steps: int = knob(8, "orchestrator.max_off_policy_steps = {}", "oldest rollout trained on [steps]")
    max_inflight: int = knob(
        1024, "orchestrator.concurrency.max_inflight = {}", "episodes (responses) in generation at once"
    )


def workers(knobs: Knobs, B: int, G: int) -> int:
    """Groups in generation at once."""
    return max(1, knobs.max_inflight // G)


def nearest(law: Law) -> Knobs:
    """It bounds the oldest delay."""
    return Knobs(max_off_policy_steps=oldest(law, SYSTEM), max_inflight=at_once(law) * law.group_size)
