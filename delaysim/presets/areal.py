"""AReaL: admission bounded by the staleness of the newest request, the oldest submission trained first."""

from dataclasses import dataclass

from delaysim.clock.law import Law
from delaysim.presets.base import at_once, knob, look_ahead, unless, updates

SYSTEM, SOURCE = "AReaL", "areal-project/AReaL, areal/infra/staleness_manager.py and areal/api/cli_args.py, 2026-08-22"
FIXED = ("rollout.consumer_batch_size={B}", "gconfig.n_samples={G}")
UNIT, COUNTS = "versions", "version trained minus version at submission"
DIFFERS = (
    "Weights are swapped during generation, so a response has tokens of several versions.",
    "Its version counts per token; here a group has one, that of its launch.",
    "A user's should_accept can reject groups; here none are rejected.",
)
staleness = updates


@dataclass
class Knobs:
    """AReaL's."""

    name: str = "areal"
    max_head_offpolicyness: int = knob(
        0,
        "rollout.max_head_offpolicyness={}",
        "versions that generation may run ahead: running + accepted <= (it + version + 1) * batch",
    )
    max_concurrent_rollouts: int | None = knob(
        None, "rollout.max_concurrent_rollouts={}", "groups in generation at once; null = consumer_batch_size, here B"
    )


def nearest(law: Law) -> Knobs:
    """Its look-ahead is the law's."""
    return Knobs(
        max_head_offpolicyness=look_ahead(law, SYSTEM),
        max_concurrent_rollouts=unless(law.groups_per_update, at_once(law)),
    )
