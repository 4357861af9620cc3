"""The delay law: the numbers that decide every launch, completion and consumption."""

from dataclasses import dataclass
from functools import cached_property
from math import floor, log
from statistics import fmean, pstdev

from delaysim.clock.durations import stretch

TICKS = 1_000_000
"""Ticks in one sim unit. The clock counts integers, so that equal times are equal."""
IN_TURN = ("completion", "submit", "version", "in_order", "version_in_order")
"""Orders that consume groups of equal durations in the order of their ids."""


def to_ticks(units: float) -> int:
    """Sim units to ticks, rounded half up."""
    return floor(units * TICKS + 0.5)


@dataclass(frozen=True)
class Law:
    """Groups in generation, a buffer of finished ones and one learner (docs/clock.md).

    Every default is the rule of a plain run: a closed loop of B*(look_ahead+1) groups, in the order of completion.
    """

    n_updates: int
    """N, updates in the run."""
    groups_per_update: int
    """B, groups in a mini-batch."""
    look_ahead: int | None
    """eta: how many updates generation may run ahead of the learner; None = no such limit."""
    c_gen: float
    """Cost of a response of reference length [sim units]."""
    c_update: float
    """Cost of one optimiser step [sim units]."""
    lam: float = 0.0
    """Strength of the coupling of duration to length, 0 = none."""
    l_ref: float = 1.0
    """Reference length [tokens]; read only with lam > 0."""
    t_min: float = 0.05
    """Shortest duration, in units of c_gen; read only with lam > 0."""
    workers: int | None = None
    """Generation slots [groups]; None = no second limit."""
    coupling: str = "affine"
    """affine | power | exp | cap | rank: how the duration follows the size (durations.py); read only with lam > 0."""
    stat: str = "max"
    """max | mean | sum of a group's lengths: its size."""
    l_cap: float = 1.0
    """Longest possible size [tokens]; read only with coupling cap."""
    pilot_sizes: tuple[float, ...] = ()
    """Sorted sizes of the pilot's groups [tokens]; read only with coupling exp and rank."""
    noise: float = 0.0
    """Mean of an exponential addition to every duration [units of c_gen]."""
    order: str = "completion"
    """Which finished groups the learner takes first (ready.py)."""
    queue_drop: float | None = None
    """Finished groups kept at most [mini-batches]; the oldest completion goes."""
    age_max: int | None = None
    """Finished groups older than this [updates] go when the learner would take a mini-batch."""
    abort_age: int | None = None
    """Groups older than this [updates] go at a publish, in generation or finished."""
    timeout: float | None = None
    """Groups still in generation so long after their launch go [sim units]."""
    requeue: bool = False
    """Whether the prompt of a group that went is launched again, before fresh ones."""
    attempts: int | None = None
    """Launches of one prompt at most; None = no such limit."""
    zero_variance: str = "kept"
    """kept | replaced: groups whose rewards are all equal, once they are scored."""
    slots: int | None = None
    """Generation slots [responses] that share `speed`; None = every group has a duration of its own."""
    group_size: int = 1
    """G, responses in a group; read only with slots."""
    speed: tuple[tuple[float, float], ...] = ()
    """(responses at once, tokens per sim unit of all together), linear in between; () = l_ref / c_gen for each."""
    arrivals: float | None = None
    """Prompts that come in per sim unit, at random; None = there is always one."""
    start: str = "burst"
    """burst | stagger | ramp: all first groups at once; partly done already; launched evenly over c_gen."""
    sync_time: float = 0.0
    """Cost of bringing weights to the sampler [sim units]."""
    sync_mode: str = "blocking"
    """blocking | background: whether the learner waits for it."""
    sync_every: int = 1
    """Updates from one weight sync to the next."""
    steps: int = 1
    """Optimiser steps of an update."""
    reward_lag: float = 0.0
    """From the end of generation until the rewards are there [sim units]."""
    replay: float = 0.0
    """Share of a mini-batch that comes from groups consumed before, 0..1."""
    replay_window: int = 0
    """Updates that a consumed group can be drawn again for; read only with replay."""

    @cached_property
    def replayed(self) -> int:
        """Groups of a mini-batch that were consumed before, once there are as many."""
        return to_ticks(self.replay * self.groups_per_update) // TICKS

    @cached_property
    def fresh(self) -> int:
        """Groups of a mini-batch that are consumed for the first time."""
        return self.groups_per_update - self.replayed

    @cached_property
    def queue_limit(self) -> int | None:
        """Finished groups that are kept at most; None = any number."""
        return None if self.queue_drop is None else to_ticks(self.queue_drop * self.groups_per_update) // TICKS

    @cached_property
    def log_sizes(self) -> tuple[float, float]:
        """Mean and standard deviation of the pilot's log-sizes."""
        logs = [log(size) for size in self.pilot_sizes]
        return fmean(logs), pstdev(logs)

    @cached_property
    def training_ticks(self) -> int:
        """Of an update, without a weight sync."""
        return to_ticks(self.steps * self.c_update)

    @cached_property
    def sync_ticks(self) -> int:
        """Of a weight sync."""
        return to_ticks(self.sync_time)

    def syncs_after(self, update: int) -> bool:
        """Whether the weights after this update are meant for the sampler."""
        return (update + 1) % self.sync_every == 0

    def update_ticks(self, update: int) -> int:
        """Ticks for which an update keeps the learner."""
        waits = self.sync_ticks and self.sync_mode == "blocking" and self.syncs_after(update)
        return self.training_ticks + (self.sync_ticks if waits else 0)

    @cached_property
    def lags(self) -> bool:
        """Whether the sampler's weights can be older than the learner's."""
        return self.sync_every > 1 or (self.sync_mode == "background" and self.sync_ticks > 0)

    @cached_property
    def drops(self) -> bool:
        """Whether a group can go without being trained on."""
        limits = (self.queue_drop, self.age_max, self.abort_age, self.timeout)
        return self.zero_variance != "kept" or any(limit is not None for limit in limits)

    @cached_property
    def shortest_ticks(self) -> int:
        """No group completes sooner after its launch than this."""
        return to_ticks(self.c_gen * (self.t_min if self.lam else 1.0))

    @cached_property
    def overlaps(self) -> bool:
        """Whether nothing but a publish launches groups, and none is finished as soon as it is launched."""
        alone = self.workers is self.slots is self.arrivals is None and self.start == "burst"
        return alone and not self.drops and not self.lags and not self.replay and self.shortest_ticks > 0

    def duration(self, size: float) -> int:
        """Ticks from launch to the end of generation of a group of this size [tokens], noise apart."""
        return to_ticks(self.c_gen * stretch(self, size))

    @cached_property
    def consumable(self) -> int | None:
        """Groups from this id on are never consumed; None where the law cannot tell.

        With equal durations groups complete in the order of their ids.
        """
        equal = not (self.lam or self.noise or self.drops or self.replay) and self.slots is None
        in_turn = equal and self.order in IN_TURN and self.start != "stagger"
        return self.n_updates * self.groups_per_update if in_turn else None

    @property
    def steady_from(self) -> int:
        """First update of the steady state: twice the look-ahead, or half the run without one."""
        return self.n_updates // 2 if self.look_ahead is None else 2 * (self.look_ahead + 1)


def fixed_delay_sim_time(n_updates: int, delay: int, c_gen: float, c_update: float) -> float:
    """Closed form of a fixed-delay run's sim time [units]: the publish time of its last update."""
    if delay * c_update >= c_gen:
        return c_gen + n_updates * c_update
    rounds, rest = divmod(n_updates - 1, delay + 1)
    return rounds * (c_gen + c_update) + c_gen + (rest + 1) * c_update


def fixed_delay_mean(n_updates: int, delay: int) -> float:
    """Closed form of a fixed-delay run's mean delay over all N updates, ramp included: mean of min(n, D)."""
    d = min(delay, n_updates - 1)
    return d - d * (d + 1) / (2 * n_updates)
