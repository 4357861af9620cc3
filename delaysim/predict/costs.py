"""What generation, training and weight syncs cost on a number of GPUs, and the work that an update is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import exp, log

from delaysim.clock.lengths import LengthLaw

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Rollout:
    """Generation: every GPU (or every engine, divided by its GPUs) alike, responses spread evenly over them."""

    speed: Points
    """(responses at once, tokens/s of all together) on one GPU; linear in between, through the origin below."""
    slots: int
    """Responses at once on one GPU at most."""

    def of(self, gpus: int) -> Points:
        """The speed of several GPUs together, up to all their slots."""
        inside = [point for point in self.speed if point[0] < self.slots]
        points = [*inside, (float(self.slots), between(self.speed, self.slots))]
        return tuple((at_once * gpus, tokens * gpus) for at_once, tokens in points)

    def peak(self, gpus: int) -> float:
        """Tokens/s of several GPUs at the fastest point of the table that their slots reach."""
        return max(tokens for _, tokens in self.of(gpus))


@dataclass(frozen=True)
class Trainer:
    """Updates: their seconds at some numbers of GPUs."""

    seconds: Points
    """(GPUs, seconds of an update)."""
    scaling: float = 1.0
    """Beyond the table seconds go with GPUs^-scaling: 1 = twice the GPUs take half the time, 0 = no gain."""

    def at(self, gpus: int) -> float:
        """Seconds of an update: on the straight line between rows in log seconds over log GPUs, else by `scaling`."""
        (first, slowest), (last, fastest) = self.seconds[0], self.seconds[-1]
        if gpus <= first:
            return slowest * float((first / gpus) ** self.scaling)
        if gpus >= last:
            return fastest * float((last / gpus) ** self.scaling)
        return exp(between(tuple((log(count), log(cost)) for count, cost in self.seconds), log(gpus)))

    def measured(self, gpus: int) -> bool:
        """Whether the table has this number of GPUs."""
        return any(count == gpus for count, _ in self.seconds)


@dataclass(frozen=True)
class Work:
    """One update's worth of responses."""

    groups: int
    """B."""
    group_size: int
    """G."""
    lengths: LengthLaw
    """Of generated tokens; a prompt's cost belongs to the speeds and seconds as they were measured."""

    @property
    def samples(self) -> int:
        """Responses of an update, B*G."""
        return self.groups * self.group_size


@dataclass(frozen=True)
class Costs:
    """All that a prediction rests on."""

    work: Work
    rollout: Rollout
    trainer: Trainer
    sync: float = 0.0
    """Seconds from the end of an update until the rollout GPUs have its weights; the learner waits for it."""
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Where each part comes from, in words."""


def between(points: Points, x: float) -> float:
    """Height at x: linear between points of growing x, flat beyond the last, through the origin before the first."""
    (left, low), (last, high) = points[0], points[-1]
    if x >= last:
        return high
    if x <= left:
        return low * x / left
    for right, height in points[1:]:
        if x <= right:
            return low + (height - low) * (x - left) / (right - left)
        left, low = right, height
    raise AssertionError("x lies before the last point")
