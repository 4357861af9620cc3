"""Groups from elsewhere: JSON lines, one group each.

    {"group": 0, "delay": 3, "rewards": [1, 0], "behaviour_logp": [[-0.1, -2], [-0.7]], "logp": [[-0.2, -2], [-0.9]]}

`prox_logp` (like logp), `advantages` (like rewards; else group_norm of the rewards), `versions` (one number: the
responses of a group share one) and `group` are optional. A null behaviour log-probability is unknown: ratio 1.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from delaysim.errors import UserError
from delaysim.estimators.advantage import STD_FLOOR
from delaysim.ratios import Recorded

KNOWN = ("group", "delay", "rewards", "behaviour_logp", "logp", "prox_logp", "versions", "advantages")


@dataclass(frozen=True)
class Group:
    """One line, checked."""

    group: int
    delay: int
    version: int
    rewards: list[float]
    advantages: list[float]
    tokens: dict[str, list[list[float]]]
    """logp, behaviour_logp and, where given, prox_logp: one list a response."""


def read_groups(path: Path, groups_per_batch: int) -> Iterator[Recorded]:
    """The groups of a file, in mini-batches of one group size. Raises UserError that names the line."""
    waiting: list[Group] = []
    for group in _groups(path):
        if waiting and (len(waiting) == groups_per_batch or _kind(group) != _kind(waiting[0])):
            yield _batched(waiting)
            waiting = []
        waiting.append(group)
    if waiting:
        yield _batched(waiting)


def _kind(group: Group) -> tuple[int, bool]:
    return len(group.rewards), "prox_logp" in group.tokens


def _groups(path: Path) -> Iterator[Group]:
    try:
        file = path.open("rb")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    with file:
        count = 0
        for number, line in enumerate(file, 1):
            if line.strip():
                count += 1
                yield _parsed(line, f"{path}, line {number}", count - 1)
        if not count:
            raise UserError(f"{path} has no groups: give one JSON object a line, see docs/screening.md")


def _parsed(line: bytes, where: str, index: int) -> Group:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise UserError(f"{where}: not JSON ({error})") from None
    if not isinstance(row, dict):
        raise UserError(f"{where}: a group is a JSON object, not {type(row).__name__}")
    for key in ("delay", "rewards", "behaviour_logp", "logp"):
        if key not in row:
            raise UserError(f"{where}: {key} is missing")
    for key in row:
        if key not in KNOWN:
            raise UserError(f"{where}: {key} is not known; the fields are {', '.join(KNOWN)}")
    return _group(row, where, index)


def _group(row: dict[str, Any], where: str, index: int) -> Group:
    rewards = _numbers(row["rewards"], f"{where}: rewards")
    delay = _whole(row["delay"], f"{where}: delay")
    logp = _tokens(row["logp"], f"{where}: logp", None)
    lengths = [len(response) for response in logp]
    if len(logp) != len(rewards):
        raise UserError(f"{where}: {len(rewards)} rewards, but logp has {len(logp)} responses")
    tokens = {"logp": logp, "behaviour_logp": _known(row["behaviour_logp"], logp, lengths, f"{where}: behaviour_logp")}
    if row.get("prox_logp") is not None:
        tokens["prox_logp"] = _tokens(row["prox_logp"], f"{where}: prox_logp", lengths)
    return Group(
        group=_whole(row.get("group", index), f"{where}: group"),
        delay=delay,
        version=_version(row.get("versions"), f"{where}: versions"),
        rewards=rewards,
        advantages=_advantages(row.get("advantages"), rewards, f"{where}: advantages"),
        tokens=tokens,
    )


def _whole(value: Any, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise UserError(f"{what} is {value!r}: give a whole number, 0 or more")
    return value


def _numbers(values: Any, what: str) -> list[float]:
    if not isinstance(values, list) or not values:
        raise UserError(f"{what}: give a list of numbers")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise UserError(f"{what}: {value!r} is not a finite number")
    return [float(value) for value in values]


def _tokens(values: Any, what: str, lengths: list[int] | None) -> list[list[float]]:
    if not isinstance(values, list) or not values:
        raise UserError(f"{what}: give one list of log-probabilities per response")
    responses = [_numbers(value, f"{what}, response {i}") for i, value in enumerate(values)]
    found = [len(response) for response in responses]
    if lengths is not None and found != lengths:
        raise UserError(f"{what} has responses of {found} tokens, logp of {lengths}")
    return responses


def _known(values: Any, logp: list[list[float]], lengths: list[int], what: str) -> list[list[float]]:
    """Behaviour log-probabilities, unknown ones as current."""
    if isinstance(values, list) and [len(v) if isinstance(v, list) else -1 for v in values] == lengths:
        values = [
            [now if then is None else then for then, now in zip(response, current, strict=True)]
            for response, current in zip(values, logp, strict=True)
        ]
    return _tokens(values, what, lengths)


def _version(value: Any, what: str) -> int:
    if value is None:
        return 0
    distinct = set(value) if isinstance(value, list) else {value}
    if len(distinct) != 1:
        raise UserError(f"{what}: {value!r}: the responses of a group share one version")
    return _whole(distinct.pop(), what)


def _advantages(value: Any, rewards: list[float], what: str) -> list[float]:
    if value is not None:
        given = _numbers(value, what)
        if len(given) != len(rewards):
            raise UserError(f"{what}: {len(given)} numbers for {len(rewards)} responses")
        return given
    if max(rewards) == min(rewards):
        return [0.0] * len(rewards)
    centred = np.array(rewards) - np.mean(rewards)
    return [float(a) for a in centred / (np.std(rewards, ddof=1) + STD_FLOOR)]


def _batched(groups: list[Group]) -> Recorded:
    def flat(name: str) -> np.ndarray[Any, Any]:
        return np.array([value for group in groups for response in group.tokens[name] for value in response])

    return Recorded(
        update=0,
        logp=flat("logp"),
        behaviour=flat("behaviour_logp"),
        lengths=np.array([[len(response) for response in group.tokens["logp"]] for group in groups]),
        rewards=np.array([group.rewards for group in groups]),
        advantages=np.array([group.advantages for group in groups]),
        delays=np.array([group.delay for group in groups]),
        groups=np.array([group.group for group in groups]),
        proximal=flat("prox_logp") if "prox_logp" in groups[0].tokens else None,
        versions=np.array([group.version for group in groups]),
    )
