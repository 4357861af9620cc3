"""Ways to run generation and training on given GPUs, each as a law of the clock in seconds."""

from collections.abc import Sequence
from dataclasses import dataclass

from delaysim.clock import Law
from delaysim.predict.costs import Costs


@dataclass(frozen=True)
class Operation:
    """When generation may run ahead of the learner, and by how much."""

    name: str
    look_ahead: int
    """eta [updates]."""
    in_order: bool
    """The learner takes the mini-batch that was asked for, not the groups that happen to be finished first."""
    colocated: bool = False
    """All GPUs generate, then all train."""


COLOCATED = Operation("colocated", 0, True, colocated=True)
SYNCHRONOUS = Operation("synchronous", 0, True)
ONE_STEP_OFF = Operation("one-step-off", 1, True)


def asynchronous(look_ahead: int) -> Operation:
    """Fully asynchronous: whatever is finished first, generation at most eta updates ahead."""
    return Operation(f"async eta={look_ahead}", look_ahead, False)


@dataclass(frozen=True)
class Cell:
    """One operation on one split of the GPUs."""

    operation: Operation
    trainer: int
    """GPUs that train."""
    rollout: int
    """GPUs that generate; the same ones where they are colocated."""

    @property
    def gpus(self) -> int:
        """GPUs in all."""
        return self.trainer if self.operation.colocated else self.trainer + self.rollout

    @property
    def split(self) -> str:
        """trainer:rollout, or the number of GPUs that do both."""
        return f"{self.trainer}" if self.operation.colocated else f"{self.trainer}:{self.rollout}"


def grid(gpus: int, trainer_gpus: Sequence[int], look_aheads: Sequence[int]) -> list[Cell]:
    """Every operation on every split; colocated once."""
    apart = [SYNCHRONOUS, ONE_STEP_OFF, *map(asynchronous, look_aheads)]
    splits = [Cell(operation, count, gpus - count) for operation in apart for count in trainer_gpus]
    return [Cell(COLOCATED, gpus, gpus), *splits]


def law_of(cell: Cell, costs: Costs, updates: int) -> Law:
    """The clock's law, one sim unit a second. Each response has a slot; the slots share the speed of their GPUs."""
    work, engine = costs.work, costs.rollout
    return Law(
        n_updates=updates,
        groups_per_update=work.groups,
        look_ahead=cell.operation.look_ahead,
        c_gen=1.0,
        c_update=costs.trainer.at(cell.trainer),
        order="in_order" if cell.operation.in_order else "completion",
        slots=engine.slots * cell.rollout,
        group_size=work.group_size,
        speed=engine.of(cell.rollout),
        sync_time=costs.sync,
    )
