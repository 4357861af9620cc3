"""The rows of `updates` and the evaluations, while a run goes on, in TensorBoard, W&B or trackio (docs/live.md)."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from math import isfinite
from typing import Any, NamedTuple

from delaysim.accuracy import Accuracy, summarise
from delaysim.errors import UserError
from delaysim.run.progress import RunWatcher
from delaysim.run.records import RunDir
from delaysim.run.trackers import TRACKERS, Labels, Tracker

TRAIN = ("reward_mean", "length_mean", "truncated", "mixed", "entropy", "grad_norm", "grad_cos", "lr", "tokens")
EVAL = ("pass1", "se", "greedy", "truncated", "length_mean")


class Event(NamedTuple):
    """What is sent together; the evaluation of weights n has position 2n, update n has 2n + 1."""

    position: int
    step: int
    values: dict[str, float]


def of_row(row: Mapping[str, Any]) -> Event:
    """A row of `updates`, its finite numbers under train/, delay/, ratio/ and time/."""
    values = {f"{_group(name)}/{name}": value for name, value in row.items() if name != "update"}
    return Event(2 * row["update"] + 1, row["update"], _finite(values))


def of_evaluation(accuracy: Accuracy) -> Event:
    """An evaluation, under eval/."""
    return Event(2 * accuracy.update, accuracy.update, _finite({f"eval/{n}": getattr(accuracy, n) for n in EVAL}))


def _group(column: str) -> str:
    if column.endswith("_s") or column in ("sim_time", "wait"):
        return "time"
    return "delay" if column.startswith("delay_") else "train" if column in TRAIN else "ratio"


def _finite(values: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items() if value is not None and isfinite(value)}


def require(sinks: Sequence[str]) -> None:
    """Raise UserError where the package of one is missing."""
    for name in sinks:
        spec = find_spec(name)
        if spec is None or spec.origin is None:  # a folder of that name is no package
            raise UserError(f"sinks=[{','.join(sinks)}] needs {name}: pip install 'delaysim[{name}]'")


class Sinks:
    """A watcher that tells `inner`, then every tracker; one that fails is warned of and left.

    A tracker cannot take back what a kill takes from the run. So sinks.json says how far each has been told, before it
    is told, and a resumed run skips that much: nothing is sent twice, and at most what was under way is missing.
    """

    def __init__(self, inner: RunWatcher, run: RunDir, sinks: Sequence[str], labels: Labels) -> None:
        self._inner, self._file = inner, run.path / "sinks.json"
        self._sent: dict[str, int] = run.read("sinks.json")
        self._trackers: dict[str, Tracker] = {}
        for name in sinks:
            with self._surviving(name):
                self._trackers[name] = TRACKERS[name](run.path, labels)

    def catch_up(self, run: RunDir, version: int) -> None:
        """Send what the run has up to a checkpoint at `version` and a tracker has not: one that is new, above all."""
        rows = (of_row(row) for row in run.rows("updates") if row["update"] < version)
        evals = (of_evaluation(accuracy) for accuracy in summarise(run.rows("evals")) if accuracy.update <= version)
        for event in sorted([*rows, *evals]):
            self._send(event)

    def updated(self, row: dict[str, Any]) -> None:
        self._inner.updated(row)
        self._send(of_row(row))

    def evaluated(self, accuracy: Accuracy) -> None:
        self._inner.evaluated(accuracy)
        self._send(of_evaluation(accuracy))

    def working(self, what: str, done: int, total: int) -> None:
        self._inner.working(what, done, total)

    def close(self) -> None:
        """Let every tracker write out what it holds."""
        for name, tracker in list(self._trackers.items()):
            with self._surviving(name):
                tracker.close()

    def _send(self, event: Event) -> None:
        for name, tracker in list(self._trackers.items()):
            if event.position > self._sent.get(name, -1):
                with self._surviving(name):
                    self._claim(name, event.position)
                    tracker.log(event.values, event.step)

    def _claim(self, name: str, position: int) -> None:
        self._sent[name] = position
        part = self._file.with_suffix(".part")
        part.write_text(json.dumps(self._sent))  # a kill cannot tear it; what a power cut loses is a point of a curve
        part.replace(self._file)

    @contextmanager
    def _surviving(self, name: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # a tracker is beside the run: whatever happens in it, the run goes on
            self._trackers.pop(name, None)
            what = " ".join(f"{type(error).__name__}: {error}".split())
            self._inner.warn(f"sink {name} failed, the run goes on without it: {what}")
