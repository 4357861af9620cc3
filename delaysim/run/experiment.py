"""One training run, end to end: the clock asks, this generates, trains, evaluates, records and saves."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any, Protocol

import numpy as np

from delaysim.accuracy import Accuracy, summarise
from delaysim.clock import TICKS, Clock, Law, Lengths, Step, Train
from delaysim.clock.replay import Replay
from delaysim.clock.steps import Answer, Sync
from delaysim.clock.trace import group_rows, moments
from delaysim.errors import Interrupted, RunFailed, SamplerFailed
from delaysim.policy.model import Policy
from delaysim.policy.rescore import Recompute
from delaysim.policy.rollout import Group
from delaysim.ratios import frame
from delaysim.run.account import write_account
from delaysim.run.answers import Answers, dropped_before
from delaysim.run.checkpoint import Checkpoints, Pointer
from delaysim.run.clocks import clock_of
from delaysim.run.consumed import Consumed
from delaysim.run.evaluate import evaluate
from delaysim.run.measured import Measured
from delaysim.run.pending import Pending
from delaysim.run.records import RunDir
from delaysim.run.rollouts import Launcher, Rollouts, Stream
from delaysim.run.sampling import decoding_of
from delaysim.run.stopwatch import Stopwatch
from delaysim.run.tracefile import write_clock, write_trace
from delaysim.settings.behaviour import recomputes
from delaysim.settings.config import MEASURED, Config
from delaysim.tasks import Task
from delaysim.train import diagnostics
from delaysim.train.learner import Learner, Outcome
from delaysim.train.recorded import recorded
from delaysim.train.scoring import rescored

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

    def close(self) -> None:
        """The run has ended, one way or another."""


class Experiment:
    """A run between its checkpoints. `run` holds the lock; `law` is settled."""

    def __init__(
        self, cfg: Config, law: Law, run: RunDir, policy: Policy, task: Task, learner: Learner, watcher: Watcher
    ) -> None:
        self.cfg, self.law, self.run, self.policy, self.task, self.learner = cfg, law, run, policy, task, learner
        self.watcher = watcher
        self.watch = Stopwatch()
        self.clock: Clock | Replay | Measured | None = None
        """Of the run that is under way."""
        self.stopping = False
        """Set to end the run at the next safe point."""
        self._checkpoints = Checkpoints(run.path)
        self._pending = Pending(run.path / "pending")
        self._decoding = decoding_of(cfg, policy)
        self._problems = task.held_out(cfg.evaluation.problems)
        self._version = 0
        self._syncs = self._syncs_before = 0
        """Done to a lagging sampler, as the clock counts them; and of them, by the checkpoint."""
        self._saved: Pointer | None = None
        self._last_saved_s = self.watch.now()

    # the run

    def go(self) -> None:
        """Run to the end. Raises Collapsed, RunFailed or Interrupted; what was recorded stays."""
        answers = self._restore()
        try:
            self._go(self._launcher(answers), answers)
        except SamplerFailed as failure:
            self._save()  # no sampler is asked in the middle of an update
            raise RunFailed(f"{failure}; the state after update {self._version} is saved") from failure

    def _go(self, launcher: Launcher, answers: Answers) -> None:
        self._publish()
        if self._evaluation_is_due() and not any(row["update"] == self._version for row in self.run.rows("evals")):
            self._evaluate()
        if self.cfg.suite_name == MEASURED:
            self.clock = Measured(self.law, launcher)
            self.clock.run(self._update)
        else:
            self._simulate(clock_of(self.cfg, self.law), launcher)
        self._finish(answers)

    def _simulate(self, clock: Clock | Replay, launcher: Launcher) -> None:
        self.clock = clock
        steps, answer = clock.steps(), None
        with suppress(StopIteration):
            while True:
                answer = self._answer(steps.send(answer), launcher)

    def _answer(self, step: Step, launcher: Launcher) -> Lengths | Answer | None:
        """Do what the clock asks for; on two devices, what it asks for together at the same time."""
        self._pending.discard(step.dropped)
        train = step.train if step.train is not None and step.train.update >= self._version else None
        if step.launch is None or train is None or not self.policy.generating.sampler.elsewhere:
            answer = None if step.launch is None else launcher.launch(step.launch)
            self._update(train, step.sync)
            return answer
        asked = launcher.ask(step.launch)
        try:
            self._update(train, meanwhile=lambda: launcher.keep_all(asked))
        except SamplerFailed as failure:  # in the middle of an update: weights and records are apart
            raise RunFailed(f"{failure}; it goes on from its last checkpoint") from failure
        return launcher.launch(step.launch)

    def _launcher(self, answers: Answers) -> Launcher:
        rollouts = Rollouts(
            self.policy.generating, self.task, self._decoding, Stream(self.cfg.seed, "sampling"), self.cfg.G,
            self.cfg.sampler.chunk, self.watch, self._recompute(),
        )  # fmt: skip
        return Launcher(self.run, rollouts, self._pending, answers, self._between_chunks)

    def _recompute(self) -> Recompute | None:
        """How responses get log-probabilities as the learner computes them, by the weights that drew them."""
        policy = self.policy.generating
        if not recomputes(self.cfg) or policy.sampler.elsewhere:
            return None
        return partial(rescored, self.cfg.learner, self._decoding.temperature, self.cfg.routing, policy.model)

    def _update(
        self, train: Train | None, sync: Sync | None = None, meanwhile: Callable[[], object] = lambda: None
    ) -> None:
        """An update, if there is one to train; then what happens to the sampler's weights; then all that follows."""
        if train is not None:
            self._train(train, meanwhile)
        if sync is not None:
            self._sync(sync)
        if train is not None:
            self._after_publish()

    def _train(self, train: Train, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Train, take in what was generated `meanwhile`, and publish."""
        self.policy.sampler.rest()
        groups = self._pending.get((*train.groups, *train.replayed))
        self._pending.discard(self._consumed.add(train))
        try:
            with self.watch.time("train"):
                outcome = self.learner.update(train.update, groups)
                row = diagnostics.update_row(outcome, groups)
                per_group = diagnostics.group_rows(outcome, groups, train.update)
        finally:
            meanwhile()  # an update that ends the run leaves the record that one device leaves
        self._version = train.update + 1
        published = self.clock.now if isinstance(self.clock, Measured) else train.publish
        times = {"sim_time": published / TICKS, "wait": train.wait / TICKS, **self.watch.lap()}
        times |= {**self._of_sampler(), "tokens_per_s": row["tokens"] / times["wall_s"]}
        row = {"update": train.update, **row, **times}
        self.run.append("updates", [row])
        self.run.append("groups", self._marked(per_group, train))
        self._record_ratios(train.update, outcome, groups)
        self.watcher.updated(row)
        self._publish()

    def _marked(self, rows: list[dict[str, Any]], train: Train) -> list[dict[str, Any]]:
        """Rows of `groups`; with replay they say which groups were consumed before."""
        return [row | {"replayed": row["group"] in train.replayed} for row in rows] if self.law.replayed else rows

    def _sync(self, sync: Sync) -> None:
        """What the clock says of the weights of a sampler that lags behind, unless the checkpoint has it already."""
        self._syncs += 1
        lagging = self.policy.lagging
        assert lagging is not None
        if self._syncs > self._syncs_before:
            lagging.arrive(sync.version) if sync.arrived else lagging.set_aside()

    def _publish(self) -> None:
        with self.watch.time("publish"):
            self.policy.publish(self._version)

    def _of_sampler(self) -> dict[str, float]:
        """What a sampler with weights of its own says of the last update."""
        sampler = self.policy.generating.sampler
        said = {"publish_gap": sampler.gap, "sampler_s": sampler.lap()}
        return {name: value for name, value in said.items() if value is not None}

    def _record_ratios(self, update: int, outcome: Outcome, groups: Sequence[Group]) -> None:
        which = self.cfg.record.ratios
        if which == "all" or (which == "sample" and update % SAMPLE_EVERY == 0):
            self.run.append_bytes("ratios", frame(recorded(update, outcome, groups)))

    def _after_publish(self) -> None:
        last = self._version == self.law.n_updates
        if self._evaluation_is_due():
            self._evaluate()
        if last or self.stopping or self._version % self.cfg.checkpoint.every == 0:
            self._save()
        if self.stopping and not last:
            raise Interrupted(f"stopped after update {self._version} of {self.law.n_updates}, state saved")

    def _between_chunks(self) -> None:
        if self.clock is not None and (gone := len(self.clock.ledger.dropped)):
            self.watcher.working("groups dropped", gone, len(self.clock.ledger))
        if self.stopping:
            self._save()
            raise Interrupted(f"stopped while generating for update {self._version}, state saved")
        if self.watch.now() - self._last_saved_s > SAVE_AFTER_S:
            self._save()

    def _evaluation_is_due(self) -> bool:
        every = self.cfg.evaluation.every
        return self._version in (0, self.law.n_updates) or (every is not None and self._version % every == 0)

    def _evaluate(self) -> None:
        with self.watch.time("evaluate"):
            conf, decoding = self.cfg.evaluation, replace(self._decoding, routes=False)
            rows = evaluate(self.policy, self.task, self._problems, conf.samples, decoding, self._version, conf.batch)
            self.run.append("evals", rows)
        self.watcher.evaluated(summarise(rows)[0])

    # state

    def _save(self) -> None:
        """Make everything so far durable, in an order that leaves a whole checkpoint at any instant."""
        with self.watch.time("checkpoint"):
            syncs = max(self._syncs, self._syncs_before)
            saved = self._saved
            same = saved is not None and (saved.update, saved.syncs) == (self._version, syncs)
            weights = saved.weights if saved is not None and same else self._save_weights(syncs)
            self._pending.save()
            self._saved = Pointer(self._version, weights, self.run.sizes(), syncs)
            self._checkpoints.point(self._saved)
            self._pending.forget_consumed()
        self._last_saved_s = self.watch.now()

    def _save_weights(self, syncs: int) -> str:
        over = self._version == self.law.n_updates
        optimiser = {} if over and not self.cfg.checkpoint.finished_optimiser else self.learner.optimiser_state()
        lagging = {} if over or self.policy.lagging is None else self.policy.lagging.state()
        return self._checkpoints.save_weights(self._version, self.policy.model, optimiser, lagging, syncs)

    def _restore(self) -> Answers:
        """Cut every file back to the last checkpoint and load it; the record of launches up to there."""
        pointer = self._saved = self._checkpoints.read() or Pointer(0, None, {})
        self._checkpoints.forget_others(pointer)
        self.run.truncate(pointer.sizes)
        self._checkpoints.load(pointer, self.policy.model, self.learner)
        self._version, self._syncs_before = pointer.update, pointer.syncs
        if self.policy.lagging is not None and self._version < self.law.n_updates:
            self._checkpoints.load_lagging(pointer, self.policy.lagging)
        answers = Answers(self.law, self.run.rows("launches"))
        self._restore_pending(answers)
        return answers

    def _restore_pending(self, answers: Answers) -> None:
        """Load what is generated and neither consumed, unless it can be drawn again, nor dropped."""
        trained = self.run.rows("groups")
        self._consumed = Consumed(self.law, self._version, trained)
        wanted = answers.lengths.keys() - {row["group"] for row in trained} | self._consumed.groups
        if self.law.drops:
            wanted -= dropped_before(Clock(self.law, self.cfg.seed), answers, self._version)
        self._pending.load(wanted)
        if missing := self._pending.missing(wanted):
            raise RunFailed(f"{self.run.path}/pending lacks group {min(missing)}: resume=never starts over")

    def _finish(self, answers: Answers) -> None:
        assert self.clock is not None
        rows = group_rows(self.clock.ledger)
        table = np.array([answers.lengths[group] for group in range(len(answers.lengths))], np.int64)
        table = table.reshape(-1, self.cfg.G)
        write_trace(self.run.path / "trace.parquet", rows, table)
        write_clock(self.run.path / "clock.parquet", self.clock.ledger)
        rewards = np.array(
            [row["rewards"] for row in sorted(self.run.rows("launches"), key=itemgetter("group"))], float
        )
        in_flight, simulated = self.cfg.clock.in_flight == "account", isinstance(self.clock, Clock)
        write_account(self.run.path, self.clock.ledger, rows, table, self.law, rewards, in_flight, simulated)
        self.run.write("moments.json", moments(rows, self.law, self.clock.now / TICKS))
