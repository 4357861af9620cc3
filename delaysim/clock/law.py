"""The delay law: the numbers that decide every launch, completion and consumption."""

from dataclasses import dataclass
from functools import cached_property
from math import floor

TICKS = 1_000_000
"""Ticks in one sim unit. The clock counts integers, so that equal times are equal."""


def to_ticks(units: float) -> int:
    """Sim units to ticks, rounded half up."""
    return floor(units * TICKS + 0.5)


@dataclass(frozen=True)
class Law:
    """A closed loop of B*(look_ahead+1) groups around one learner (docs/clock.md).

    With `lam` = 0 every group takes `c_gen`. With `lam` > 0 a group takes
    c_gen * max(t_min, 1 + lam * (longest response / l_ref - 1)): its slowest response completes it.
    """

    n_updates: int
    """N, updates in the run."""
    groups_per_update: int
    """B, groups in a mini-batch."""
    look_ahead: int
    """eta: how many updates generation may run ahead of the learner."""
    c_gen: float
    """Cost of a response of reference length [sim units]."""
    c_update: float
    """Cost of one update [sim units]."""
    lam: float = 0.0
    """Strength of the coupling of duration to length, 0 = none."""
    l_ref: float = 1.0
    """Reference length [tokens]; read only with lam > 0."""
    t_min: float = 0.05
    """Shortest duration, in units of c_gen; read only with lam > 0."""
    workers: int | None = None
    """Generation slots [groups]; None = no second limit."""

    @cached_property
    def update_ticks(self) -> int:
        return to_ticks(self.c_update)

    @property
    def shortest_ticks(self) -> int:
        """No group completes sooner after its launch than this."""
        return to_ticks(self.c_gen * (self.t_min if self.lam else 1.0))

    def duration(self, longest: int) -> int:
        """Ticks from launch to completion of a group whose longest response has this length [tokens]."""
        if not self.lam:
            return to_ticks(self.c_gen)
        return to_ticks(self.c_gen * max(self.t_min, 1.0 + self.lam * (longest / self.l_ref - 1.0)))

    @property
    def consumable(self) -> int | None:
        """Groups from this id on are never consumed; None where the law cannot tell.

        With equal durations groups complete in the order of their ids.
        """
        return None if self.lam else self.n_updates * self.groups_per_update


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
