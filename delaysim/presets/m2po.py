"""M2PO's study of staleness: whole batches wait in a queue for so many iterations."""

from dataclasses import dataclass

from delaysim.clock.law import Law
from delaysim.presets.base import Column, knob, look_ahead, syncs

SYSTEM, SOURCE = "M2PO", "Infini-AI-Lab/M2PO, verl/trainer/ppo/ray_trainer.py and train-scripts/, 2025-10-08"
FIXED = ("actor_rollout_ref.actor.ppo_mini_batch_size={B}", "actor_rollout_ref.rollout.n={G}")
UNIT, COUNTS = "iterations", "iteration trained minus iteration generated"
DIFFERS = (
    "The delay is exact, in iterations: the j-th (from 0) of an iteration's k updates has k * stale_iteration + j.",
    "Generation and training take turns, so its time is not that of this clock.",
    "Its first iterations only generate; here nothing is generated that is not needed, and versions are the same.",
)


@dataclass
class Knobs:
    """Of its training scripts."""

    name: str = "m2po"
    stale_iteration: int = knob(0, "+data.stale_iteration={}", "iterations that a batch waits; 64 = 256 updates there")
    train_batch_size: int | None = knob(
        None, "data.train_batch_size={}", "prompts in an iteration; null = 4 mini-batches"
    )


def sync_every(knobs: Knobs, B: int, G: int) -> int:
    """Updates in an iteration."""
    return max(1, (knobs.train_batch_size or 4 * B) // B)


def eta(knobs: Knobs, B: int, G: int) -> int:
    """Iterations in updates."""
    return knobs.stale_iteration * sync_every(knobs, B, G)


def staleness(update: Column, version: Column, knobs: Knobs, B: int, G: int) -> Column:
    """Iterations between the two."""
    return syncs(update, version, sync_every(knobs, B, G))


def nearest(law: Law) -> Knobs:
    """The look-ahead in iterations, to the nearest whole one."""
    waits = int(look_ahead(law, SYSTEM) / law.sync_every + 0.5)
    return Knobs(stale_iteration=waits, train_batch_size=law.sync_every * law.groups_per_update)
