"""Evaluation on held-out problems: one row per problem and response."""

from collections.abc import Sequence
from typing import Any

from delaysim.policy.codec import prompt_of
from delaysim.policy.model import Policy
from delaysim.policy.rollout import Response
from delaysim.policy.sample import Decoding
from delaysim.policy.sampler import Draw
from delaysim.tasks import Problem, Task

NOISE_SEED = 0
"""Evaluation noise depends on problem and response only, so that every run and every update shares it."""
KEEP_TOKENS = 4
"""Problems whose responses are kept as token ids."""


def evaluate(
    policy: Policy,
    task: Task,
    problems: Sequence[Problem],
    samples: int,
    decoding: Decoding,
    version: int,
    batch: int = 64,
) -> list[dict[str, Any]]:
    """Rows of `evals`, `batch` problems at a time: response 0 is greedy, responses 1..samples are as in training."""
    rows: list[dict[str, Any]] = []
    for start in range(0, len(problems), batch):
        rows += _evaluate_batch(policy, task, problems[start : start + batch], start, samples, decoding, version)
    return rows


def _evaluate_batch(
    policy: Policy,
    task: Task,
    problems: Sequence[Problem],
    first: int,
    samples: int,
    decoding: Decoding,
    version: int,
) -> list[dict[str, Any]]:
    prompts = [prompt_of(policy.codec, problem) for problem in problems]
    greedy = policy.sampler.sample(prompts, 1, decoding, None)
    sampled: list[Response] = []
    if samples:
        keys = [(first + i, r) for i in range(len(problems)) for r in range(1, samples + 1)]
        sampled = policy.sampler.sample(prompts, samples, decoding, Draw(NOISE_SEED, "evaluation", keys))
    rows = []
    for i, problem in enumerate(problems):
        for r, response in enumerate([greedy[i], *sampled[i * samples : (i + 1) * samples]]):
            rows.append(_row(policy, task, problem, response, first + i, r, version))
    return rows


def _row(
    policy: Policy, task: Task, problem: Problem, response: Response, index: int, number: int, version: int
) -> dict[str, Any]:
    grade = task.grade(problem, policy.codec.decode(response.tokens), response.finished)
    row = {
        "update": version,
        "problem": problem.id,
        "response": number,
        "greedy": number == 0,
        "correct": grade.correct,
        "status": grade.status or ("correct" if grade.correct else "wrong"),
        "length": len(response.tokens),
        "truncated": not response.finished,
    }
    return row | ({"tokens": response.tokens.tolist()} if index < KEEP_TOKENS else {})
