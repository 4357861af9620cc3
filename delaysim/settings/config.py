"""Every setting of a run, typed, with its unit. `conf/` holds the values, `checks.py` the rules between them."""

from dataclasses import dataclass, field
from typing import Any, Union

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING

from delaysim.estimators.base import Recipe
from delaysim.settings.samplers import HfSamplerConf, VllmSamplerConf
from delaysim.tasks.base import INSTRUCTION

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
class LoraConf:
    """Low-rank adapters (2106.09685) beside frozen weights; the extra `lora`."""

    rank: int | None = None
    """Of each adapter; null = none, all weights are trained."""
    alpha: int = 32
    """An adapter's product is scaled by alpha / rank."""
    targets: list[str] = field(default_factory=lambda: ["all-linear"])
    """Names of the layers that get one; all-linear = every linear layer but the output head."""


@dataclass
class PretrainedModelConf:
    """Any causal language model that transformers loads."""

    kind: str = "pretrained"
    seed: int = 0
    """Seed of the pilot."""
    path: str = MISSING
    """Hub id, local directory, .gguf file, or pkg:PACKAGE/FILE inside an installed Python package."""
    dtype: str = "float32"
    """float32 | bfloat16: what the weights are kept in. Adapters are float32."""
    lora: LoraConf = field(default_factory=LoraConf)
    template: str = "auto"
    """How a problem becomes a prompt: auto (the chat template where there is one, else qwen_math) | chat | qwen_math |
    plain | a text with {problem} and {instruction}."""
    seconds_per_update: float = 60.0
    """Wall time of one update of 64 responses, for mode=plan before any run has been measured."""


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
    recompute: bool = False
    """Gradient checkpointing: keep only the input of each layer and compute the layer again in the backward pass."""
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
class Config:
    """The whole configuration. The short names on top are read through the groups that interpolate them."""

    suite_name: str | None = None
    mode: str = "train"
    resume: str = "auto"
    runs_dir: str = "runs"
    threads: int = 1
    """CPU threads of one process."""
    devices: list[str] = field(default_factory=lambda: ["cpu"])
    """Of the learner, and of a sampler beside it if there are two: [cpu], [cpu,cpu], [cuda:0], [cuda:0,cuda:1]."""
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
    behaviour: str = "auto"
    """Whose log-probabilities of the sampled tokens the estimator sees: recomputed by the learner at launch, or the
    sampler's; auto = recomputed where the two compute apart (delaysim/settings/behaviour.py)."""
    recipe: str = "shared"
    """shared: one advantage and aggregation for every estimator; published: each paper's own."""
    clock: ClockConf = field(default_factory=ClockConf)
    lengths: Any = MISSING
    model: Any = MISSING
    task: Any = MISSING
    sampler: Any = MISSING
    estimator: Any = MISSING
    rule: Any = MISSING
    learner: LearnerConf = field(default_factory=LearnerConf)
    evaluation: EvaluationConf = field(default_factory=EvaluationConf)
    checkpoint: CheckpointConf = field(default_factory=CheckpointConf)
    record: RecordConf = field(default_factory=RecordConf)


TASKS: dict[str, type] = {
    "chain": ChainConf,
    "sums": SumsConf,
    "gsm8k": Gsm8kConf,
    "math": MathConf,
    "reasoning_gym": ReasoningGymConf,
    "custom": CustomTaskConf,
}
"""By `task.kind`."""


def register() -> None:
    """Give Hydra the schemas that the files of `conf/` name. The estimators bring their own."""
    from delaysim import estimators, rules

    store = ConfigStore.instance().store
    store(name="base_config", node=Config)
    schemas = {
        "lengths": {"lognormal": LognormalConf, "recorded": RecordedConf},
        "model": {"tiny": TinyModelConf, "pretrained": PretrainedModelConf},
        "task": TASKS,
        "sampler": {"hf": HfSamplerConf, "vllm": VllmSamplerConf},
        "estimator": {
            "custom": CustomConf,
            **{name: module.Params for name, module in estimators.discover().items()},
        },
        "rule": {name: module.Params for name, module in rules.discover().items()},
    }
    for group, nodes in schemas.items():
        for name, node in nodes.items():
            store(group=f"schema/{group}", name=name, node=node)
