"""Every setting of a run, typed, with its unit. `conf/` holds the values, `checks.py` the rules between them."""

from dataclasses import dataclass, field
from typing import Any, Union

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING

from delaysim.estimators.base import Recipe
from delaysim.settings.tasks import TASKS

SHARED_RECIPE = Recipe("group_norm", "seq_mean_token_mean")
"""What every estimator gets unless recipe=published."""
AUTO = "auto"
"""In place of a number: taken from the pilot."""


@dataclass
class ClockConf:
    """The delay law (docs/clock.md)."""

    C_gen: float = MISSING
    """Cost of a response of reference length [sim units]."""
    C_update: float = MISSING
    """Cost of one update [sim units]."""
    lam: float = MISSING
    """Coupling of a group's duration to its longest response, 0 = none."""
    eta: Union[int, str] = AUTO  # noqa: UP007 - OmegaConf reads typing.Union only
    """Look-ahead: how many updates generation may run ahead of the learner; auto = pilot (lam>0) or C_gen/C_update."""
    L_ref: Union[int, float, str] = AUTO  # noqa: UP007
    """Reference length [tokens]; auto = the pilot's mean response length."""
    t_min: float = 0.05
    """Shortest duration of a group [units of C_gen]."""
    pilot: int = 128
    """Groups in the pilot, never trained on; run only with lam>0 and something auto."""
    workers: int | None = None
    """Generation slots [groups]; null = no such limit."""


@dataclass
class LognormalConf:
    """Lengths for mode=trace: lognormal, part of the log-variance shared within a group."""

    mean: float = 600.0
    """Mean before the cap [tokens]."""
    sigma: float = 0.7
    """Standard deviation of the log-length."""
    prompt_share: float = 0.5
    """Share of the log-variance common to a group, 0..1."""
    cap: int = 3072
    """Longest response [tokens]."""


@dataclass
class RecordedConf:
    """Lengths for mode=trace: one column of a CSV or JSONL file, drawn with replacement."""

    path: str = MISSING
    """The file."""
    column: str = MISSING
    """Its column or field."""


@dataclass
class TinyModelConf:
    """A Qwen3-architecture model of about 0.1M parameters, built here by supervised fine-tuning (docs/tiny.md)."""

    kind: str = "tiny"
    seed: int = 0
    """Seed of the base weights, of their training data and of the pilot."""
    hidden_size: int = 64
    intermediate_size: int = 192
    layers: int = 2
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 32
    initializer_range: float = 0.1
    sft_steps: int = 600
    sft_batch: int = 64
    """Demonstrations per step."""
    sft_lr: float = 6e-3
    seconds_per_update: float = 0.1
    """Wall time of one update of 64 responses, for mode=plan before any run has been measured."""


@dataclass
class PretrainedModelConf:
    """Any causal language model that transformers loads."""

    kind: str = "pretrained"
    seed: int = 0
    """Seed of the pilot."""
    path: str = MISSING
    """Hub id, local directory, .gguf file, or pkg:PACKAGE/FILE inside an installed Python package."""
    dtype: str = "float32"
    """float32 | bfloat16."""
    template: str = "auto"
    """How a problem becomes a prompt: auto (the chat template where there is one, else qwen_math) | chat | qwen_math |
    plain | a text with {problem} and {instruction}."""
    seconds_per_update: float = 60.0
    """Wall time of one update of 64 responses, for mode=plan before any run has been measured."""


@dataclass
class SamplerConf:
    """How responses are generated."""

    kind: str = "hf"
    temperature: float = 1.0
    max_new_tokens: int = MISSING
    """Longest response [tokens]; one that reaches it is truncated."""
    chunk: int = 8
    """Groups of one launch generated together; a chunk is regenerated whole after an interruption."""


@dataclass
class LearnerConf:
    """The optimiser and the two choices every estimator shares."""

    lr: float = MISSING
    """AdamW learning rate after warm-up."""
    beta1: float = 0.9
    beta2: float = 0.99
    weight_decay: float = 0.0
    clip: float = 0.3
    """Largest gradient norm; a larger gradient is scaled down to it."""
    warmup: int = 10
    """Updates of linear warm-up."""
    advantage: str = SHARED_RECIPE.advantage
    """group_norm | group_mean | leave_one_out | length_norm | reward | signed_reward."""
    aggregation: str = SHARED_RECIPE.aggregation
    """seq_mean_token_mean | seq_mean_token_sum | token_mean | fixed_length (of sampler.max_new_tokens)."""
    kl: float = 0.0
    """Weight of the KL penalty towards the base weights; 0 = none."""
    kl_penalty: str = "k3"
    """k2 | k3: whose gradient it has (delaysim/estimators/penalty.py)."""
    updates_per_batch: int = 1
    """Optimiser steps on each mini-batch; the weights before the first are the proximal policy."""
    bucket: int = 16
    """Sequences processed together, sorted by length so that little is padded."""
    pack: int = 96
    """Responses to one prompt share a sequence of up to this many tokens; 0 = each has its own."""


@dataclass
class CustomConf:
    """An estimator in a file of the user's (docs/estimators/README.md)."""

    name: str = "custom"
    path: str = MISSING
    """A Python file with `coefficients(batch, params)`."""
    eps: float | None = None
    """Sets the file's dial; null = its own default."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Fields of the file's Params, e.g. +estimator.settings.cap=3."""


@dataclass
class EvaluationConf:
    """Evaluation on held-out problems, greedy and sampled."""

    every: int | None = MISSING
    """Updates between evaluations; null = only before the first and after the last update."""
    problems: int = MISSING
    """Held-out problems."""
    samples: int = MISSING
    """Sampled responses per problem, besides the greedy one."""
    collapse_looks: int = 3
    """A run collapses when this many evaluations in a row ..."""
    collapse_se: float = 2.0
    """... lie this many standard errors below the base."""


@dataclass
class CheckpointConf:
    """Checkpoints: weights, optimiser and the positions in every file."""

    every: int = 20
    """Updates between checkpoints; the last update always has one."""


@dataclass
class RecordConf:
    """What is kept beside the rows."""

    ratios: str = MISSING
    """Token log-probabilities that `delaysim screen` replays: all | sample (every tenth update) | none."""


@dataclass
class Config:
    """The whole configuration. The short names on top are read through the groups that interpolate them."""

    suite_name: str | None = None
    mode: str = "train"
    resume: str = "auto"
    runs_dir: str = "runs"
    threads: int = 1
    """CPU threads of one process."""
    display: str = "auto"
    """auto | live | plain | quiet."""
    D: int | None = None
    """Fixed delay [updates]."""
    G: int = 8
    """Responses per group."""
    B: int = 8
    """Groups per update."""
    eps: float | None = None
    """The estimator's threshold; null = the published one."""
    lam: float | None = None
    """Length coupling of the delay."""
    C_gen: float = 85.0
    """Cost of a response of reference length [sim units]."""
    C_update: float = 1.0
    """Cost of one update [sim units]."""
    seed: int = 0
    """Seed of prompts and sampling; the base weights have `model.seed`."""
    updates: int = MISSING
    """N, learner updates."""
    lr: float | None = None
    """AdamW learning rate."""
    recipe: str = "shared"
    """shared: one advantage and aggregation for every estimator; published: each paper's own."""
    clock: ClockConf = field(default_factory=ClockConf)
    lengths: Any = MISSING
    model: Any = MISSING
    task: Any = MISSING
    sampler: SamplerConf = field(default_factory=SamplerConf)
    estimator: Any = MISSING
    rule: Any = MISSING
    learner: LearnerConf = field(default_factory=LearnerConf)
    evaluation: EvaluationConf = field(default_factory=EvaluationConf)
    checkpoint: CheckpointConf = field(default_factory=CheckpointConf)
    record: RecordConf = field(default_factory=RecordConf)


def register() -> None:
    """Give Hydra the schemas that the files of `conf/` name. The estimators bring their own."""
    from delaysim import estimators, rules

    store = ConfigStore.instance().store
    store(name="base_config", node=Config)
    schemas = {
        "lengths": {"lognormal": LognormalConf, "recorded": RecordedConf},
        "model": {"tiny": TinyModelConf, "pretrained": PretrainedModelConf},
        "task": TASKS,
        "estimator": {
            "custom": CustomConf,
            **{name: module.Params for name, module in estimators.discover().items()},
        },
        "rule": {name: module.Params for name, module in rules.discover().items()},
    }
    for group, nodes in schemas.items():
        for name, node in nodes.items():
            store(group=f"schema/{group}", name=name, node=node)
