"""Every setting of a run, typed, with its unit. `conf/` holds the values, `checks.py` the rules between them."""

from dataclasses import dataclass, field
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING

from delaysim.estimators.base import Recipe
from delaysim.settings.clock import AUTO as AUTO
from delaysim.settings.clock import FREE as FREE
from delaysim.settings.clock import ClockConf as ClockConf
from delaysim.settings.models import MODELS
from delaysim.settings.routing import RoutingConf
from delaysim.settings.samplers import SAMPLERS
from delaysim.settings.tasks import TASKS

SHARED_RECIPE = Recipe("group_norm", "seq_mean_token_mean")
"""What every estimator gets unless recipe=published."""
MEASURED = "measured"
"""The suite without a clock: two processes, and delays as they come."""
REPLAY = "replay"
"""The suite whose delays were recorded elsewhere."""
SINKS = ("tensorboard", "wandb", "trackio")
"""Where the rows of a run can go while it goes on (docs/live.md)."""


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
    flat: float = 0.0
    """Share of groups whose rewards are all equal; read with clock.zero_variance=replaced."""


@dataclass
class RecordedConf:
    """Lengths for mode=trace: one column of a CSV or JSONL file, drawn with replacement."""

    path: str = MISSING
    """The file."""
    column: str = MISSING
    """Its column or field."""
    flat: float = 0.0
    """Share of groups whose rewards are all equal; read with clock.zero_variance=replaced."""


@dataclass
class DelaysConf:
    """Delays of the suite `replay`: one column of a CSV or JSONL file, or of a trace's parquet."""

    path: str | None = None
    """The file."""
    column: str = "delay"
    """Its column or field [updates]."""
    where: str | None = None
    """COLUMN=VALUE: the rows that are read; null = all."""
    per: str = "update"
    """update | group: what has one recorded delay; with group, B in a row make a mini-batch."""


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
    schedule: str = "constant"
    """constant | linear | cosine: the learning rate after warm-up, over the updates of the run."""
    final: float = 0.0
    """Share of the learning rate that linear and cosine fall to."""
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
    tokens: int | None = None
    """Micro-batch: sequences of together at most so many tokens, padding included, are held with their graphs at once,
    and never more than `bucket`; null = the whole mini-batch."""
    logits: int | None = None
    """Response tokens whose logits stand in memory at once; null = all of a bucket."""
    gradient_checkpointing: bool = False
    """Keep only the input of each layer and compute the layer again in the backward pass."""
    precision: str = "float32"
    """float32: as the weights are; bf16_autocast: float32 weights, matrix products in bfloat16."""

    @property
    def autocasts(self) -> bool:
        """Whether model and learner run float32 weights in bfloat16."""
        return self.precision == "bf16_autocast"


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
    batch: int = 64
    """Problems sampled together, each `samples` times."""
    collapse_looks: int = 3
    """A run collapses when this many evaluations in a row ..."""
    collapse_se: float = 2.0
    """... lie this many standard errors below the base."""


@dataclass
class CheckpointConf:
    """Checkpoints: weights, optimiser and the positions in every file."""

    every: int = 20
    """Updates between checkpoints; the last update always has one."""
    finished_optimiser: bool = True
    """Keep the optimiser of a finished run, which is not run again: two thirds of its checkpoint."""


@dataclass
class RecordConf:
    """What is kept beside the rows."""

    ratios: str = MISSING
    """Token log-probabilities that `delaysim screen` replays: all | sample (every tenth update) | none."""


@dataclass
class PlanConf:
    """What mode=plan compares with."""

    memory_gb: float | None = None
    """Memory of the device [1e9 bytes]; null = that of this machine, where it is known."""


@dataclass
class Config:
    """The whole configuration. The short names on top are read through the groups that interpolate them."""

    suite_name: str | None = None
    mode: str = "train"
    resume: str = "auto"
    runs_dir: str = "runs"
    threads: int = 1
    """CPU threads of one process."""
    jobs: int = 1
    """Cells of a sweep at once on this machine."""
    devices: list[str] = field(default_factory=lambda: ["cpu"])
    """Of the learner, and of a sampler beside it if there are two: [cpu], [cpu,cpu], [cuda:0], [cuda:0,cuda:1]."""
    display: str = "auto"
    """auto | live | plain | quiet."""
    sinks: list[str] = field(default_factory=list)
    """Any of tensorboard, wandb, trackio."""
    D: int | None = None
    """Fixed delay [updates]."""
    G: int = 8
    """Responses per group."""
    B: int = 8
    """Groups per update."""
    responses: int | None = None
    """Responses per update, B*G: B follows G. Null: B is given."""
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
    behaviour: str = "auto"
    """Whose log-probabilities of the sampled tokens the estimator sees: recomputed by the learner at launch, or the
    sampler's; auto = recomputed where the two compute apart (delaysim/settings/behaviour.py)."""
    recipe: str = "shared"
    """shared: one advantage and aggregation for every estimator; published: each paper's own."""
    clock: ClockConf = field(default_factory=ClockConf)
    delays: DelaysConf = field(default_factory=DelaysConf)
    lengths: Any = MISSING
    model: Any = MISSING
    task: Any = MISSING
    sampler: Any = MISSING
    routing: RoutingConf = field(default_factory=RoutingConf)
    estimator: Any = MISSING
    rule: Any = MISSING
    learner: LearnerConf = field(default_factory=LearnerConf)
    evaluation: EvaluationConf = field(default_factory=EvaluationConf)
    checkpoint: CheckpointConf = field(default_factory=CheckpointConf)
    record: RecordConf = field(default_factory=RecordConf)
    plan: PlanConf = field(default_factory=PlanConf)
    preset: Any = None
    """Knobs of a real system that the clock is set by (delaysim/presets); null = none."""


def register() -> None:
    """Give Hydra the schemas that the files of `conf/` name. The estimators bring their own."""
    from delaysim import estimators, presets, rules

    store = ConfigStore.instance().store
    store(name="base_config", node=Config)
    schemas = {
        "lengths": {"lognormal": LognormalConf, "recorded": RecordedConf},
        "model": MODELS,
        "task": TASKS,
        "sampler": SAMPLERS,
        "estimator": {
            "custom": CustomConf,
            **{name: module.Params for name, module in estimators.discover().items()},
        },
        "rule": {name: module.Params for name, module in rules.discover().items()},
        "preset": {name: module.Knobs for name, module in presets.discover().items()},
    }
    for group, nodes in schemas.items():
        for name, node in nodes.items():
            store(group=f"schema/{group}", name=name, node=node)
