"""verl, fully asynchronous: so many samples between parameter syncs, some of them ahead of need."""

from dataclasses import dataclass

from delaysim.clock.law import Law
from delaysim.presets.base import Column, knob, look_ahead, syncs

SYSTEM, SOURCE = "verl, fully asynchronous", "verl-project/verl, verl/experimental/fully_async_policy, 2026-08-22"
FIXED = ("actor_rollout_ref.actor.ppo_mini_batch_size={B}", "actor_rollout_ref.rollout.n={G}")
UNIT, COUNTS = "parameter syncs", "parameter version trained minus version that generated"
DIFFERS = (
    "staleness_threshold is a share of extra samples, not an age: (1 + it) * samples per sync may be there at a sync; "
    "the look-ahead is that share in updates, to the nearest whole one.",
    "They may all start at the sync; here a mini-batch of them starts after each update, with the same weights.",
    "Its queue holds as much as may be there, so its rule to drop the oldest never acts.",
    "partial_rollout interrupts generation at a sync and goes on under the new weights.",
)


@dataclass
class Knobs:
    """async_training of verl's fully asynchronous trainer."""

    name: str = "verl_fully_async"
    staleness_threshold: float = knob(
        0.1, "async_training.staleness_threshold={}", "samples started ahead, as a share of those between two syncs"
    )
    trigger_parameter_sync_step: int = knob(
        4, "async_training.trigger_parameter_sync_step={}", "trainer steps from one parameter sync to the next"
    )
    require_batches: int = knob(1, "async_training.require_batches={}", "mini-batches taken at a trainer step")
    partial_rollout: bool = knob(True, "async_training.partial_rollout={}", "whether a sync interrupts generation")


def sync_every(knobs: Knobs, B: int, G: int) -> int:
    """Updates from one parameter sync to the next: trainer steps times mini-batches of each."""
    return knobs.trigger_parameter_sync_step * knobs.require_batches


def eta(knobs: Knobs, B: int, G: int) -> int:
    """The share started ahead [updates], to the nearest whole one."""
    return int(knobs.staleness_threshold * sync_every(knobs, B, G) + 0.5)


def in_flight(knobs: Knobs, B: int, G: int) -> str:
    """Whether weights are swapped during generation."""
    return "account" if knobs.partial_rollout else "none"


def staleness(update: Column, version: Column, knobs: Knobs, B: int, G: int) -> Column:
    """Parameter syncs between the two: a delay of 4*d + 0..3 updates is d of them at the default."""
    return syncs(update, version, sync_every(knobs, B, G))


def nearest(law: Law) -> Knobs:
    """The look-ahead as a share of the updates between syncs."""
    share = look_ahead(law, SYSTEM) / law.sync_every
    return Knobs(staleness_threshold=share, trigger_parameter_sync_step=law.sync_every)
