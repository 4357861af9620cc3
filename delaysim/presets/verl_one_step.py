"""verl, one step off: the next batch is generated while the last one is trained on."""

from dataclasses import dataclass

from delaysim.clock.law import Law
from delaysim.errors import UserError
from delaysim.presets.base import updates

SYSTEM, SOURCE = "verl, one step off", "verl-project/verl, verl/experimental/one_step_off_policy, 2026-08-22"
FIXED = (
    "python -m verl.experimental.one_step_off_policy.main_ppo",
    "data.train_batch_size={B}",
    "actor_rollout_ref.rollout.n={G}",
)
UNIT, COUNTS = "parameter versions", "version trained minus version that generated"
DIFFERS = ("It has no staleness setting: every batch but the first is exactly one step off.",)
staleness = updates


@dataclass
class Knobs:
    """None."""

    name: str = "verl_one_step"


def nearest(law: Law) -> Knobs:
    """Only a delay of 1."""
    if law.look_ahead != 1:
        raise UserError(f"{SYSTEM} has a delay of exactly 1, and {law.look_ahead} was asked for; use --to verl")
    return Knobs()
