"""TRL's AsyncGRPOTrainer: so many tasks in flight, a bounded queue, samples too old when they are taken go."""

from dataclasses import dataclass

from delaysim.clock.law import Law
from delaysim.errors import UserError
from delaysim.presets.base import Column, knob, oldest, syncs, unless

SYSTEM, SOURCE = "TRL AsyncGRPO", "huggingface/trl, trl/experimental/async_grpo, 2026-07-24"
FIXED = ("--num_generations {G}", "# per_device_train_batch_size * gradient_accumulation_steps * processes = {R}")
UNIT, COUNTS = "weight syncs", "weight version trained minus weight version that generated"
DIFFERS = (
    "Samples are queued, judged and dropped one by one; here groups are.",
    "Where the queue is full, generation waits: the look-ahead is what is in flight and in the queue.",
    "max_staleness=0 leaves nothing in flight (trl #5656), and is refused.",
    "Generation is paused for a weight sync and goes on under the new weights.",
)


@dataclass
class Knobs:
    """AsyncGRPOConfig's."""

    name: str = "trl_async"
    max_staleness: int = knob(4, "--max_staleness {}", "oldest sample trained on [weight syncs]")
    weight_sync_steps: int = knob(1, "--weight_sync_steps {}", "updates from one weight sync to the next")
    queue_maxsize: int = knob(1024, "--queue_maxsize {}", "finished samples that wait at most")
    max_inflight_tasks: int | None = knob(
        None, "--max_inflight_tasks {}", "samples in generation at once; null = its -1: max_staleness * samples a step"
    )


def workers(knobs: Knobs, B: int, G: int) -> int:
    """Groups in generation at once."""
    tasks = knobs.max_inflight_tasks
    return knobs.max_staleness * B if tasks is None else tasks // G


def eta(knobs: Knobs, B: int, G: int) -> int:
    """Mini-batches in flight and in the full queue, rounded up each, beside the one in training."""
    return -(-workers(knobs, B, G) // B) - (-knobs.queue_maxsize // (B * G))


def age_max(knobs: Knobs, B: int, G: int) -> int:
    """Oldest delay [updates]: a sample goes once more than max_staleness syncs have passed."""
    return (knobs.max_staleness + 1) * knobs.weight_sync_steps - 1


def staleness(update: Column, version: Column, knobs: Knobs, B: int, G: int) -> Column:
    """Weight syncs between the two."""
    return syncs(update, version, knobs.weight_sync_steps)


def nearest(law: Law) -> Knobs:
    """It bounds the oldest delay."""
    group, batch = law.group_size, law.groups_per_update
    most = (oldest(law, SYSTEM) + 1) // law.sync_every - 1
    if most < 1:
        raise UserError(f"{SYSTEM} needs max_staleness of 1 or more; for a delay of 0 use its GRPOTrainer")
    waits = (law.look_ahead or 0) - -(-(law.workers or 0) // batch)
    return Knobs(
        max_staleness=most,
        weight_sync_steps=law.sync_every,
        queue_maxsize=waits * batch * group if law.drops and law.workers and waits > 0 else 1024,
        max_inflight_tasks=None if law.workers is None else unless(most * batch * group, law.workers * group),
    )
