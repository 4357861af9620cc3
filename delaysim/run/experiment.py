"""One training run, end to end: the clock asks, this generates, trains, evaluates, records and saves."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from delaysim.accuracy import Accuracy, summarise
from delaysim.clock import TICKS, Clock, Law, Train
from delaysim.clock.trace import group_rows, moments
from delaysim.errors import Interrupted, RunFailed
from delaysim.policy.model import Policy
from delaysim.policy.rollout import Group
from delaysim.policy.sample import Decoding
from delaysim.ratios import frame
from delaysim.run.checkpoint import Checkpoints, Pointer
from delaysim.run.evaluate import evaluate
from delaysim.run.pending import Pending
from delaysim.run.records import RunDir
from delaysim.run.rollouts import Launcher, Rollouts, Stream
from delaysim.run.stopwatch import Stopwatch
from delaysim.run.tracefile import write_trace
from delaysim.settings.config import Config
from delaysim.tasks import Task
from delaysim.train import diagnostics
from delaysim.train.learner import Learner, Outcome
from delaysim.train.recorded import recorded

SAVE_AFTER_S = 60.0
"""During a long launch, progress is made durable about this often [wall seconds]."""
SAMPLE_EVERY = 10
"""record.ratios=sample keeps the mini-batches of every tenth update."""


class Watcher(Protocol):
    """Who is told what happens while it happens."""

    def updated(self, row: dict[str, Any]) -> None:
        """One update was trained; `row` is its row of `updates`."""

    def evaluated(self, accuracy: Accuracy) -> None:
        """One evaluation is done."""

    def working(self, what: str, done: int, total: int) -> None:
        """Something that takes a while has got this far."""


class Experiment:
    """A run between its checkpoints. `run` holds the lock; `law` is settled."""

    def __init__(
        self, cfg: Config, law: Law, run: RunDir, policy: Policy, task: Task, learner: Learner, watcher: Watcher
    ) -> None:
        self.cfg, self.law, self.run, self.policy, self.task, self.learner = cfg, law, run, policy, task, learner
        self.watcher = watcher
        self.watch = Stopwatch()
        self.clock = Clock(law)
        self.stopping = False
        """Set to end the run at the next safe point."""
        self._checkpoints = Checkpoints(run.path)
        self._pending = Pending(run.path / "pending")
        self._decoding = decoding_of(cfg, policy)
        self._problems = task.held_out(cfg.evaluation.problems)
        self._version = 0
        self._saved: Pointer | None = None
        self._last_saved_s = self.watch.now()

    # the run

    def go(self) -> None:
        """Run to the end. Raises Collapsed, RunFailed or Interrupted; what was recorded stays."""
        self._restore()
        launcher = self._launcher()
        if self._version == 0 and not self.run.rows("evals"):
            self._evaluate()
        steps, answer = self.clock.steps(), None
        try:
            while True:
                step = steps.send(answer)
                answer = None if step.launch is None else launcher.launch(step.launch)
                if step.train is not None and step.train.update >= self._version:
                    self._train(step.train)
        except StopIteration:
            self._finish(launcher)

    def _launcher(self) -> Launcher:
        stream = Stream(self.cfg.seed, "sampling")
        rollouts = Rollouts(
            self.policy, self.task, self._decoding, stream, self.cfg.G, self.cfg.sampler.chunk, self.watch
        )
        return Launcher(self.run, rollouts, self._pending, self._between_chunks)

    def _train(self, train: Train) -> None:
        groups = self._pending.take(train.groups)
        with self.watch.time("train"):
            outcome = self.learner.update(train.update, groups)
            row = diagnostics.update_row(outcome, groups)
            per_group = diagnostics.group_rows(outcome, groups, train.update)
        self._version = train.update + 1
        times = {"sim_time": train.publish / TICKS, "wait": train.wait / TICKS, **self.watch.lap()}
        row = {"update": train.update, **row, **times, "tokens_per_s": row["tokens"] / times["wall_s"]}
        self.run.append("updates", [row])
        self.run.append("groups", per_group)
        self._record_ratios(train.update, outcome, groups)
        self.watcher.updated(row)
        self._after_publish()

    def _record_ratios(self, update: int, outcome: Outcome, groups: Sequence[Group]) -> None:
        which = self.cfg.record.ratios
        if which == "all" or (which == "sample" and update % SAMPLE_EVERY == 0):
            self.run.append_bytes("ratios", frame(recorded(update, outcome, groups)))

    def _after_publish(self) -> None:
        last, every = self._version == self.law.n_updates, self.cfg.evaluation.every
        if last or (every and self._version % every == 0):
            self._evaluate()
        if last or self.stopping or self._version % self.cfg.checkpoint.every == 0:
            self._save()
        if self.stopping and not last:
            raise Interrupted(f"stopped after update {self._version} of {self.law.n_updates}, state saved")

    def _between_chunks(self) -> None:
        if self.stopping:
            self._save()
            raise Interrupted(f"stopped while generating for update {self._version}, state saved")
        if self.watch.now() - self._last_saved_s > SAVE_AFTER_S:
            self._save()

    def _evaluate(self) -> None:
        with self.watch.time("evaluate"):
            conf = self.cfg.evaluation
            rows = evaluate(
                self.policy, self.task, self._problems, conf.samples, self._decoding, self._version, conf.batch
            )
            self.run.append("evals", rows)
        self.watcher.evaluated(summarise(rows)[0])

    # state

    def _save(self) -> None:
        """Make everything so far durable, in an order that leaves a whole checkpoint at any instant."""
        with self.watch.time("checkpoint"):
            saved = self._saved
            if saved is not None and saved.update == self._version:
                weights = saved.weights
            else:
                finished = self._version == self.law.n_updates and not self.cfg.checkpoint.finished_optimiser
                optimiser = {} if finished else self.learner.optimiser_state()
                weights = self._checkpoints.save_weights(self._version, self.policy.model, optimiser)
            self._pending.save()
            self._saved = Pointer(self._version, weights, self.run.sizes())
            self._checkpoints.point(self._saved)
            self._pending.forget_consumed()
        self._last_saved_s = self.watch.now()

    def _restore(self) -> None:
        """Cut every file back to the last checkpoint and load it."""
        self._saved = self._checkpoints.read()
        pointer = self._saved = self._saved or Pointer(0, None, {})
        self.run.truncate(pointer.sizes)
        self._checkpoints.load(pointer, self.policy.model, self.learner)
        self._version = pointer.update
        launched = {row["group"] for row in self.run.rows("launches")}
        wanted = launched - {row["group"] for row in self.run.rows("groups")}
        self._pending.load(wanted)
        if missing := self._pending.missing(wanted):
            raise RunFailed(f"{self.run.path}/pending lacks group {min(missing)}: resume=never starts over")

    def _finish(self, launcher: Launcher) -> None:
        rows = group_rows(self.clock.ledger)
        table = np.array([launcher.lengths[group] for group in range(len(launcher.lengths))], np.int64)
        write_trace(self.run.path / "trace.parquet", rows, table.reshape(-1, self.cfg.G))
        self.run.write("moments.json", moments(rows, self.law, self.clock.now / TICKS))


def decoding_of(cfg: Config, policy: Policy) -> Decoding:
    """How the run chooses tokens."""
    return Decoding(cfg.sampler.max_new_tokens, cfg.sampler.temperature, policy.codec.stop_ids, cfg.learner.autocasts)
