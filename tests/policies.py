"""Small training runs of the clock's policies, and the clock alone fed with what they recorded."""

import json

from settings import rows, small_config

from delaysim.clock import Clock
from delaysim.clock.durations import STATS
from delaysim.clock.steps import Answer
from delaysim.settings.laws import law_from

COUPLED = ("clock.eta=3", "clock.L_ref=12", "C_gen=4", "updates=14", "sampler.chunk=2", "checkpoint.every=5")
POLICIES = {
    "queue": ("clock.queue_drop=1", "clock.workers=6", "clock.eta=none", "C_gen=2"),
    "age": ("clock.age_max=1", "clock.requeue=true"),
    "aborted": ("clock.abort_age=2", "clock.requeue=true", "clock.attempts=2"),
    "timeout": ("clock.timeout=4", "clock.requeue=true", "clock.stat=sum", "clock.coupling=power", "clock.L_ref=60"),
    "flat": ("clock.zero_variance=replaced", "clock.stat=mean", "clock.order=shortest"),
    "slots": ("lam=0", "clock.slots=10", "clock.speed=[[1,2],[8,12]]", "clock.timeout=24", "clock.requeue=true"),
    "random": ("clock.order=random", "clock.noise=0.5", "clock.arrivals=1.5", "clock.reward_lag=0.5"),
    "in_order": ("clock.order=in_order", "clock.start=ramp", "clock.workers=5", "clock.coupling=rank", "clock.pilot=8"),
    "every": ("clock.sync_every=3",),
    "copied": ("clock.sync_every=2", "sampler.dtype=bfloat16", "clock.replay=0.5"),
    "background": ("clock.sync_mode=background", "clock.sync_time=2.5", "clock.abort_age=4"),
    "seldom": ("clock.sync_mode=background", "clock.sync_time=1.5", "clock.sync_every=2", "clock.replay=0.5"),
    "all": (
        "clock.sync_mode=background",
        "clock.sync_time=2.5",
        "clock.abort_age=4",
        "clock.requeue=true",
        "clock.replay=0.5",
        "clock.zero_variance=replaced",
    ),
    "replay": ("clock.replay=0.5", "clock.replay_window=3", "clock.age_max=3"),
}
"""By name, each with the settings that the run takes besides `COUPLED`."""


def config(name, *overrides):
    """One of the runs above."""
    return small_config(*COUPLED, *POLICIES[name], *overrides, suite="simulated_async")


def clock_alone(path):
    """The clock and its steps, told no more than the lengths and rewards of a run's `launches`."""
    manifest = json.loads((path / "manifest.json").read_text())
    law = law_from(manifest["law"])
    launched = {row["group"]: row for row in rows(path, "launches")}
    clock = Clock(law, manifest["identity"]["seed"])
    asked, answer, steps = [], None, clock.steps()
    try:
        while True:
            asked.append(step := steps.send(answer))
            answer = None if step.launch is None else _answer(law, [launched[g] for g in step.launch.groups])
    except StopIteration:
        return clock, asked


def _answer(law, launched):
    lengths = [row["lengths"] if law.slots else STATS[law.stat](row["lengths"]) for row in launched]
    flat = [row["group"] for row in launched if len(set(row["rewards"])) == 1]
    return Answer(lengths, flat) if law.zero_variance == "replaced" else lengths
