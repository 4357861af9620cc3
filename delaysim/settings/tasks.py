"""What is trained on and how answers are checked: one group `task` (docs/tasks.md)."""

from dataclasses import dataclass, field
from typing import Any

from omegaconf import MISSING

from delaysim.tasks.base import INSTRUCTION


@dataclass
class ChainConf:
    """Sums modulo 10, work optional: generated problems, exact answers, nothing to download (docs/tiny.md)."""

    kind: str = "chain"
    min_terms: int = 3
    max_terms: int = 7


@dataclass
class SumsConf:
    """Short sums in words: generated problems on which a small chat model earns reward (docs/tasks.md)."""

    kind: str = "sums"
    min_terms: int = 2
    max_terms: int = 2
    largest: int = 20
    """Terms are drawn from 1 to this."""


@dataclass
class Gsm8kConf:
    """GSM8K: training problems with answers that are checked (docs/tasks.md)."""

    kind: str = "gsm8k"
    path: str | None = None
    """Training problems, a JSON-lines file with problem and answer; null = the data set of this name on the hub."""
    eval_path: str | None = None
    """Held-out problems; null = the last `evaluation.problems` rows of `path`, kept out of training; with path=null
    the benchmark set that belongs to it (gsm8k, math500)."""
    format_reward: float = 0.0
    """Reward of a wrong answer that stands in the asked form; a right one earns 1."""
    instruction: str = INSTRUCTION
    """What each problem is asked with; the model's template says where it stands."""
    workers: int = 1
    """Processes that check answers."""


@dataclass
class MathConf(Gsm8kConf):
    """MATH: as GSM8K, with answers of every kind."""

    kind: str = "math"


@dataclass
class ReasoningGymConf:
    """One data set of the package reasoning-gym (docs/tasks.md)."""

    kind: str = "reasoning_gym"
    dataset: str = MISSING
    """Its name there, e.g. chain_sum."""
    settings: dict[str, Any] = field(default_factory=dict)
    """The data set's own settings, e.g. +task.settings.max_terms=3."""
    instruction: str = INSTRUCTION


@dataclass
class CustomTaskConf:
    """A task in a file of the user's (docs/tasks.md)."""

    kind: str = "custom"
    path: str = MISSING
    """A Python file with a class Task."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Arguments of the class, e.g. +task.settings.largest=9."""


TASKS: dict[str, type] = {
    "chain": ChainConf,
    "sums": SumsConf,
    "gsm8k": Gsm8kConf,
    "math": MathConf,
    "reasoning_gym": ReasoningGymConf,
    "custom": CustomTaskConf,
}
"""By `task.kind`."""
