"""slime's train_async.py: the next batch is generated while the last one is trained on."""

from dataclasses import dataclass

from delaysim.clock.law import Law
from delaysim.errors import UserError
from delaysim.presets.base import Column, knob, syncs

SYSTEM, SOURCE = "slime, train_async.py", "THUDM/slime, train_async.py and slime/utils/arguments.py, 2026-08-21"
FIXED = ("python train_async.py", "--rollout-batch-size {B}", "--n-samples-per-prompt {G}")
UNIT, COUNTS = "weight updates", "weight version trained minus weight version that generated"
DIFFERS = (
    "A weight update waits until the batch in generation is finished; here it does not wait.",
    "Its fully asynchronous rollout has no limit on staleness; clock.eta with clock.order=completion comes closest.",
)


@dataclass
class Knobs:
    """Of train_async.py."""

    name: str = "slime"
    update_weights_interval: int = knob(
        1, "--update-weights-interval {}", "updates from one weight update to the next"
    )  # fmt: skip


def staleness(update: Column, version: Column, knobs: Knobs, B: int, G: int) -> Column:
    """Weight updates between the two."""
    return syncs(update, version, knobs.update_weights_interval)


def nearest(law: Law) -> Knobs:
    """Only one batch ahead."""
    if law.look_ahead != 1:
        raise UserError(f"{SYSTEM} is one batch ahead, and {law.look_ahead} was asked for; give clock.eta=1 or D=1")
    return Knobs(update_weights_interval=law.sync_every)
