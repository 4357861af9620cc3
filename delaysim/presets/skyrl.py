"""SkyRL, fully asynchronous: AReaL's admission rule, trained in the order of completion."""

from dataclasses import dataclass

from delaysim.clock.law import Law
from delaysim.presets.base import at_once, knob, look_ahead, unless, updates

SYSTEM, SOURCE = (
    "SkyRL",
    "NovaSky-AI/SkyRL, skyrl/train/fully_async_trainer.py and skyrl/train/config/config.py, 2026-08-21",
)
FIXED = ("trainer.policy_mini_batch_size={B}", "generator.n_samples_per_prompt={G}")
UNIT, COUNTS = "steps", "global step of training minus global step at the start of generation"
DIFFERS = (
    "Generation is paused for a weight sync and goes on with its key-value cache, under the new weights.",
    "Groups over the bound are trained on, with a warning; so it is here.",
    "Its step counts from 1, so its capacity (it + step) * batch is (it + version + 1) * B here.",
)
staleness = updates


@dataclass
class Knobs:
    """SkyRL's."""

    name: str = "skyrl"
    max_staleness_steps: int = knob(
        4, "trainer.fully_async.max_staleness_steps={}", "steps that generation may run ahead of the trainer"
    )
    num_parallel_generation_workers: int | None = knob(
        None, "trainer.fully_async.num_parallel_generation_workers={}",
        "groups in generation at once, at most batch * (max_staleness_steps + 1); null = its 768, or that limit",
    )  # fmt: skip


def workers(knobs: Knobs, B: int, G: int) -> int:
    """Groups in generation; SkyRL refuses more than its look-ahead lets be there."""
    asked = knobs.num_parallel_generation_workers or 768
    return min(asked, B * (knobs.max_staleness_steps + 1))


def nearest(law: Law) -> Knobs:
    """Its look-ahead is the law's."""
    eta = look_ahead(law, SYSTEM)
    limit = law.groups_per_update * (eta + 1)
    at_default = min(768, limit)
    return Knobs(max_staleness_steps=eta, num_parallel_generation_workers=unless(at_default, min(limit, at_once(law))))
