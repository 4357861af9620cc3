"""PipelineRL: generation never stops; a ring buffer drops the oldest, or max_lag bounds what is submitted."""

from dataclasses import dataclass

from delaysim.clock.law import Law
from delaysim.errors import UserError
from delaysim.presets.base import Column, at_once, knob, syncs

SYSTEM, SOURCE = (
    "PipelineRL",
    "ServiceNow/PipelineRL, pipelinerl/actor.py, pipelinerl/preprocess.py and conf/, 2026-06-19",
)
FIXED = ("attempts={G}", "# finetune.train_batch_size * finetune.gradient_accumulation_passes = {R}")
UNIT, COUNTS = "samples", "samples trained at the last weight update minus the same at generation"
DIFFERS = (
    "Weights are swapped during generation, every token has a version of its own.",
    "With max_lag, what is too old is counted and trained on; so it is here.",
    "The trainer takes samples from the ring one by one; here B groups at once, and the ring keeps at least as many.",
)


@dataclass
class Knobs:
    """Of conf/base.yaml and conf/finetune/base.yaml."""

    name: str = "pipelinerl"
    max_lag: int | None = knob(
        None, "max_lag={}", "samples that may be submitted ahead of need; null = no such limit, the ring drops"
    )
    pop_old_data: bool = knob(True, "pop_old_data={}", "whether the ring drops its oldest sample when it is full")
    weight_update_interval: int = knob(
        1, "finetune.weight_update_interval={}", "samples trained from one weight update to the next"
    )
    ring_buffer_size: int = knob(128, "preprocess.ring_buffer_size={}", "finished samples kept at most")
    llm_max_rollouts: int = knob(64, "actor.llm_max_rollouts={}", "responses in generation at once, of one engine")


def workers(knobs: Knobs, B: int, G: int) -> int:
    """Groups in generation at once."""
    return max(1, knobs.llm_max_rollouts // G)


def eta(knobs: Knobs, B: int, G: int) -> int | str:
    """max_lag in updates; without it and without drops, what a full ring and generation hold."""
    if knobs.max_lag is not None:
        return int(knobs.max_lag / (B * G) + 0.5)
    return "none" if knobs.pop_old_data else -(-workers(knobs, B, G) // B) - (-knobs.ring_buffer_size // (B * G))


def queue_drop(knobs: Knobs, B: int, G: int) -> float | None:
    """The ring in mini-batches, where it drops."""
    drops = knobs.max_lag is None and knobs.pop_old_data
    return max(1.0, knobs.ring_buffer_size / (B * G)) if drops else None


def sync_every(knobs: Knobs, B: int, G: int) -> int:
    """Updates from one weight update to the next: they come at the end of a step."""
    return max(1, -(-knobs.weight_update_interval // (B * G)))


def staleness(update: Column, version: Column, knobs: Knobs, B: int, G: int) -> Column:
    """Samples: B * G for every update between the two weight updates."""
    every = sync_every(knobs, B, G)
    return syncs(update, version, every) * every * B * G


def nearest(law: Law) -> Knobs:
    """A look-ahead as max_lag; without one a queue that drops, as the ring."""
    if law.look_ahead is None and law.queue_drop is None:
        raise UserError(f"clock.eta=none: {SYSTEM} then drops from a full ring; give clock.queue_drop, or a look-ahead")
    samples = law.groups_per_update * law.group_size
    ring = 128 if law.look_ahead is not None or law.queue_drop is None else int(law.queue_drop * samples)
    return Knobs(
        max_lag=None if law.look_ahead is None else law.look_ahead * samples,
        weight_update_interval=1 if law.sync_every == 1 else law.sync_every * samples,
        ring_buffer_size=ring,
        llm_max_rollouts=at_once(law) * law.group_size,
    )
