"""Generation at launch: prompts, responses, grades; and the answer to the clock's launches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from delaysim.clock import Launch, Lengths
from delaysim.clock.steps import Answer as ClockAnswer
from delaysim.errors import RunFailed
from delaysim.policy.codec import prompt_of
from delaysim.policy.model import Policy
from delaysim.policy.rescore import Recompute, recomputed
from delaysim.policy.rollout import Group, Ids, Response
from delaysim.policy.sample import Decoding
from delaysim.policy.sampler import Answer, Draw
from delaysim.run.answers import Answers
from delaysim.run.pending import Pending
from delaysim.run.records import RunDir
from delaysim.run.stopwatch import Stopwatch
from delaysim.tasks import Problem, Task
from delaysim.tasks.base import UNGRADED, too_many_ungraded


@dataclass(frozen=True)
class Stream:
    """Whose prompts and whose sampling noise: the run's, or the pilot's."""

    seed: int
    noise: str
    first_prompt: int = 0
    """Added to the numbers of prompts when problems are drawn."""


@dataclass(frozen=True)
class Asked:
    """A chunk of groups whose responses may still be on their way."""

    launch: Launch
    """The chunk as a launch of its own."""
    problems: Sequence[Problem]
    prompts: Sequence[Ids]
    answer: Answer


class Rollouts:
    """Generates what the clock launches and keeps it until it is consumed."""

    def __init__(
        self,
        policy: Policy,
        task: Task,
        decoding: Decoding,
        stream: Stream,
        group_size: int,
        chunk: int,
        watch: Stopwatch,
        recompute: Recompute | None = None,
    ) -> None:
        self._policy, self._task, self._decoding, self._stream = policy, task, decoding, stream
        self._group_size, self._chunk, self._watch = group_size, chunk, watch
        self._recompute = recompute

    def chunks(self, groups: range) -> list[range]:
        """A launch in pieces that are generated together: `chunk` whole groups, the last piece shorter."""
        return [range(start, min(start + self._chunk, groups.stop)) for start in groups[:: self._chunk]]

    def generate(self, groups: range, version: int) -> list[Group]:
        """One chunk of groups with the current weights. Raises RunFailed on a reward that is not finite."""
        return self.take(self.ask(Launch.fresh(version, groups)))

    def ask(self, chunk: Launch) -> Asked:
        """Have one chunk of groups generated with the current weights; prompt and attempt key problem and noise."""
        first = self._stream.first_prompt
        problems = [self._task.training(self._stream.seed, first + prompt) for prompt in chunk.prompts]
        prompts = [prompt_of(self._policy.codec, problem) for problem in problems]
        origins = zip(chunk.prompts, chunk.attempts, strict=True)
        keys = [(*origin, i) for origin in origins for i in range(self._group_size)]
        with self._watch.time("generate"):
            draw = Draw(self._stream.seed, self._stream.noise, keys)
            answer = self._policy.sampler.start(prompts, self._group_size, self._decoding, draw)
        return Asked(chunk, problems, prompts, answer)

    def take(self, asked: Asked) -> list[Group]:
        """The groups asked for, graded. Raises RunFailed on a reward that is not finite."""
        with self._watch.time("generate"):
            responses = asked.answer()
        if self._recompute is not None:
            with self._watch.time("rescore"):
                responses = recomputed(asked.prompts, responses, self._recompute)
        with self._watch.time("reward"):
            size = self._group_size
            return [self._graded(asked, b, responses[b * size : (b + 1) * size]) for b in range(len(asked.problems))]

    def _graded(self, asked: Asked, b: int, responses: Sequence[Response]) -> Group:
        launch, problem = asked.launch, asked.problems[b]
        group, attempt = launch.groups[b], launch.attempts[b]
        grades = [self._task.grade(problem, self._policy.codec.decode(r.tokens), r.finished) for r in responses]
        rewards = tuple(grade.reward for grade in grades)
        if not all(map(isfinite, rewards)):
            where = f"group {group} ({problem.id}, generated at update {launch.version})"
            raise RunFailed(f"{where}: the task gave {rewards}")
        ungraded = sum(grade.status in UNGRADED for grade in grades)
        return Group(group, launch.version, asked.prompts[b], tuple(responses), rewards, attempt, ungraded)


class Launcher:
    """Answers launches: from the record up to where a resumed run stood, by generating after that."""

    def __init__(
        self, run: RunDir, rollouts: Rollouts, pending: Pending, answers: Answers, between_chunks: Callable[[], None]
    ) -> None:
        """`answers` know the run's `launches`."""
        self._run, self._rollouts, self._pending, self._between_chunks = run, rollouts, pending, between_chunks
        self._answers = answers
        self._ungraded = sum(row.get("ungraded", 0) for row in run.rows("launches"))

    def launch(self, launch: Launch) -> Lengths | ClockAnswer:
        """Have a launch generated, chunk by chunk, and answer it."""
        for chunk in self._missing(launch):
            self.keep(self._rollouts.ask(chunk))
            self._between_chunks()
        return self._answers.to(launch)

    def ask(self, launch: Launch) -> list[Asked]:
        """Have all of a launch generated meanwhile."""
        return [self._rollouts.ask(chunk) for chunk in self._missing(launch)]

    def keep(self, asked: Asked) -> None:
        """Wait for a chunk, and put it where it is consumed from."""
        groups = self._rollouts.take(asked)
        self._pending.add(groups)
        self._run.append("launches", map(launch_row, groups, asked.launch.prompts))
        for group in groups:
            self._answers.add(group.group, group.lengths, group.rewards)
        self._ungraded += sum(group.ungraded for group in groups)
        self._check_graded()

    def _check_graded(self) -> None:
        """Raise RunFailed when more than one response in a hundred could not be graded."""
        total = sum(map(len, self._answers.lengths.values()))
        if too_many_ungraded(self._ungraded, total):
            raise RunFailed(
                f"the grading of {self._ungraded} of {total} responses timed out or died (launches, ungraded); "
                "raise task.workers, or look at what the model writes"
            )

    def keep_all(self, asked: Sequence[Asked]) -> None:
        """Wait for every chunk."""
        for chunk in asked:
            self.keep(chunk)

    def _missing(self, launch: Launch) -> list[Launch]:
        chunks = self._rollouts.chunks(launch.groups)
        return [_part(launch, chunk) for chunk in chunks if chunk.start not in self._answers.lengths]


def _part(launch: Launch, groups: range) -> Launch:
    start = launch.groups.start
    place = slice(groups.start - start, groups.stop - start)
    return Launch(launch.version, groups, launch.prompts[place], launch.attempts[place])


def launch_row(group: Group, prompt: int) -> dict[str, Any]:
    """One row of `launches`; a group whose prompt is its own id does not say it."""
    return {
        "group": group.group,
        **({} if prompt == group.group else {"prompt": prompt}),
        "attempt": group.attempt,
        "version": group.version,
        "lengths": group.lengths,
        "truncated": sum(not response.finished for response in group.responses),
        "rewards": list(group.rewards),
        "ungraded": group.ungraded,
    }
