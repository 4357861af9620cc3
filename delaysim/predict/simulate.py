"""One cell on the clock, and what its steady state says."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from delaysim.clock import TICKS, Law
from delaysim.clock.ledger import Ledger
from delaysim.clock.lengths import KeyedLengths
from delaysim.clock.trace import group_rows, run_alone
from delaysim.predict.costs import Costs
from delaysim.predict.operation import Cell, law_of

RESPONSES = 30_000
"""Responses in the steady state of a cell, for a steady mean ..."""
FEWEST, MOST = 24, 400
"""... and updates at least and at most."""
BATCHES = 8
"""Of updates, for the error of the mean."""


@dataclass(frozen=True)
class Shares:
    """Of the time of some GPUs; they sum to 1."""

    busy: float
    sync: float
    idle: float


@dataclass(frozen=True)
class Prediction:
    """A cell in its steady state."""

    cell: Cell
    seconds: float
    """Per update."""
    error: float
    """Standard error of `seconds`, by batch means."""
    samples: int
    """Responses trained on per update."""
    mean_length: float
    """Tokens of a response trained on."""
    trainer: Shares
    rollout: Shares
    use: float
    """Tokens/s generated, of what the rollout GPUs reach with every slot taken."""
    delay_mean: float
    delay_p95: float
    delay_max: float

    @property
    def updates_per_hour(self) -> float:
        return 3600 / self.seconds

    @property
    def samples_per_hour(self) -> float:
        return self.samples * self.updates_per_hour

    @property
    def tokens_per_second(self) -> float:
        """Response tokens trained on."""
        return self.samples * self.mean_length / self.seconds

    @property
    def gpu_hours(self) -> float:
        """Per update."""
        return self.cell.gpus * self.seconds / 3600


@dataclass(frozen=True)
class Steady:
    """The log of a run from its first steady update on: times in seconds, `from_` to `until`."""

    first: int
    """The first steady update."""
    poll: NDArray[np.float64]
    publish: NDArray[np.float64]
    """Per update of the run."""
    launch: NDArray[np.float64]
    done: NDArray[np.float64]
    """Per group, the end of the run where it is still in generation."""
    update: NDArray[np.int64]
    """Per group, -1 = not trained on."""
    delay: NDArray[np.int64]
    tokens: NDArray[np.float64]
    """Per group."""

    @property
    def start(self) -> float:
        """When the first steady update's predecessor was published."""
        return float(self.publish[self.first - 1])

    @property
    def duration(self) -> float:
        return float(self.publish[-1]) - self.start

    @cached_property
    def cycles(self) -> NDArray[np.float64]:
        """Seconds from publish to publish."""
        return np.diff(self.publish[self.first - 1 :])

    @property
    def trained(self) -> NDArray[np.bool_]:
        return self.update >= self.first

    @cached_property
    def generating(self) -> NDArray[np.float64]:
        """(spans, 2): disjoint times in which a response is in generation."""
        order = np.argsort(self.launch, kind="stable")
        begin, end = self.launch[order], np.maximum.accumulate(self.done[order])
        new = np.concatenate([[True], begin[1:] > end[:-1]])
        last = np.concatenate([np.flatnonzero(new)[1:] - 1, [len(end) - 1]])
        return np.stack([begin[new], end[last]], axis=1)


def updates_needed(cell: Cell, costs: Costs) -> tuple[int, int]:
    """The first steady update, and how many updates to simulate."""
    first = 2 * (cell.operation.look_ahead + 1)
    steady = min(MOST, max(FEWEST, -(-RESPONSES // costs.work.samples)))
    return first, first + BATCHES * -(-steady // BATCHES)


def predict(cell: Cell, costs: Costs, seed: int = 0) -> Prediction:
    """Run the clock on a cell and read its steady state (update >= 2*(eta+1))."""
    first, updates = updates_needed(cell, costs)
    law = law_of(cell, costs, updates)
    lengths = KeyedLengths(costs.work.lengths, costs.work.group_size, seed)
    log = steady_log(run_alone(law, lengths, seed).ledger, law, lengths, first)
    return _prediction(cell, costs, log)


def steady_log(ledger: Ledger, law: Law, lengths: KeyedLengths, first: int) -> Steady:
    """The steady part of a finished run."""
    rows = group_rows(ledger)
    publish = np.array(ledger.publish) / TICKS
    tokens = lengths.table(len(rows["group"])).sum(axis=1)
    return Steady(
        first=first,
        poll=np.array(ledger.poll) / TICKS,
        publish=publish,
        launch=rows["launch"],
        done=np.where(np.isnan(rows["done"]), publish[-1], rows["done"]),
        update=rows["update"].astype(np.int64),
        delay=rows["delay"].astype(np.int64),
        tokens=tokens.astype(np.float64),
    )


def _prediction(cell: Cell, costs: Costs, log: Steady) -> Prediction:
    delays = log.delay[log.trained]
    seconds = float(log.cycles.mean())
    trainer, rollout = shares(cell, costs, log)
    ended = (log.done > log.start) & (log.done < log.publish[-1])
    generated = float(log.tokens[ended].sum()) / log.duration
    return Prediction(
        cell=cell,
        seconds=seconds,
        error=float(log.cycles.reshape(BATCHES, -1).mean(axis=1).std(ddof=1) / BATCHES**0.5),
        samples=costs.work.samples,
        mean_length=float(log.tokens[log.trained].mean()) / costs.work.group_size,
        trainer=trainer,
        rollout=rollout,
        use=generated / costs.rollout.peak(cell.rollout),
        delay_mean=float(delays.mean()),
        delay_p95=float(np.percentile(delays, 95)),
        delay_max=float(delays.max()),
    )


def shares(cell: Cell, costs: Costs, log: Steady) -> tuple[Shares, Shares]:
    """Of the trainer's and of the rollout GPUs' time, from the event log; the same twice where they are colocated.

    A rollout GPU is busy while any response is in generation, and in a sync where it waits for weights meanwhile.
    """
    steady = slice(log.first, None)
    synced = np.stack([log.publish[steady] - costs.sync, log.publish[steady]], axis=1)
    training = np.stack([log.poll[steady], log.publish[steady] - costs.sync], axis=1)
    whole = np.array([[log.start, log.publish[-1]]])
    generating = common(log.generating, whole)
    trained, sync = total(training), total(synced)
    apart = total(synced) - total(common(generating, synced))
    made = total(generating)
    if cell.operation.colocated:
        both = _shares(trained + made - total(common(generating, training)), apart, log.duration)
        return both, both
    return _shares(trained, sync, log.duration), _shares(made, apart, log.duration)


def _shares(busy: float, sync: float, duration: float) -> Shares:
    return Shares(busy / duration, sync / duration, max(0.0, duration - busy - sync) / duration)


def total(spans: NDArray[np.float64]) -> float:
    """Length of disjoint spans (n, 2)."""
    return float((spans[:, 1] - spans[:, 0]).sum())


def common(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """The spans that two sorted lists of disjoint spans (n, 2) have in common."""
    edges = np.unique(np.concatenate([a.ravel(), b.ravel()]))
    pieces = np.stack([edges[:-1], edges[1:]], axis=1)
    middle = pieces.mean(axis=1)
    inside: Callable[[NDArray[np.float64]], NDArray[np.bool_]] = lambda spans: (  # noqa: E731
        np.searchsorted(spans[:, 0], middle, side="right") > np.searchsorted(spans[:, 1], middle, side="right")
    )
    return pieces[inside(a) & inside(b)] if len(pieces) else pieces
