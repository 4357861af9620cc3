"""Closed forms: what no schedule can beat, and what binds a cell."""

from delaysim.predict.costs import Costs
from delaysim.predict.operation import Cell


def learner_bound(cell: Cell, costs: Costs) -> float:
    """Seconds per update of a learner that never waits: it trains and syncs."""
    return costs.trainer.at(cell.trainer) + costs.sync


def rollout_bound(cell: Cell, costs: Costs, mean_length: float) -> float:
    """Seconds per update of rollout GPUs that are always full, at the fastest point of their table."""
    return costs.work.samples * mean_length / costs.rollout.peak(cell.rollout)


def bound(cell: Cell, costs: Costs, mean_length: float) -> float:
    """Least seconds per update: in turn the two add up, side by side the larger counts."""
    learner, rollout = learner_bound(cell, costs), rollout_bound(cell, costs, mean_length)
    return learner + rollout if cell.operation.look_ahead == 0 else max(learner, rollout)
