"""The settings of a model, typed, with their units."""

from dataclasses import dataclass, field

from omegaconf import MISSING

ALL_LINEAR = "all-linear"
"""Every linear layer but the output head."""
_, _, GROUPED = EXPERTS_IMPLEMENTATIONS = ("eager", "batched_mm", "grouped_mm")
"""How transformers multiplies experts: one after another | one product per token and expert | one kernel for all."""
NO_EXPERTS = "the model has no experts; use one that has, e.g. model=tiny_moe, or drop it"
"""Said of a dense model."""


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
class TinyMoeConf(TinyModelConf):
    """The same with a mixture of experts in place of each feed-forward block (Qwen3-MoE architecture)."""

    kind: str = "tiny_moe"
    experts: int = 16
    experts_per_token: int = 2
    expert_size: int = 160
    """Intermediate size of one expert."""
    experts_implementation: str = GROUPED
    """eager | batched_mm | grouped_mm: how the learner multiplies experts. The base is taught with grouped_mm, whatever
    stands here."""
    sft_lr: float = 3e-3


@dataclass
class ShapeConf:
    """The published numbers of a model's configuration, for mode=plan before it is downloaded."""

    vocabulary: int = MISSING
    hidden: int = MISSING
    intermediate: int = MISSING
    layers: int = MISSING
    heads: int = MISSING
    kv_heads: int = MISSING
    head_dim: int = MISSING
    tied: bool = MISSING
    """One tensor for embedding and output head."""
    head_norms: bool = False
    """Queries and keys are normalised by head."""
    biases: bool = False
    """On queries, keys and values."""
    experts: int = 0
    experts_per_token: int = 0
    expert_size: int = 0


@dataclass
class SpeedConf:
    """Assumed speeds on one device, for mode=plan before any run has been measured [tokens/s]."""

    hf: float = MISSING
    """Sampled, transformers."""
    vllm: float = MISSING
    """Sampled, vLLM."""
    train: float = MISSING
    """Trained on, prompt and response."""


@dataclass
class LoraConf:
    """Low-rank adapters (2106.09685) beside frozen weights; the extra `lora`."""

    rank: int | None = None
    """Of each adapter; null = none, all weights are trained."""
    alpha: int = 32
    """An adapter's product is scaled by alpha / rank."""
    targets: list[str] = field(default_factory=lambda: [ALL_LINEAR])
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
    experts_implementation: str | None = None
    """eager | batched_mm | grouped_mm: how the learner multiplies experts; null = as transformers chooses."""
    lora: LoraConf = field(default_factory=LoraConf)
    template: str = "auto"
    """How a problem becomes a prompt: auto (the chat template where there is one, else qwen_math) | chat | qwen_math |
    plain | a text with {problem} and {instruction}."""
    seconds_per_update: float = 60.0
    """Wall time of one update of 64 responses, for mode=plan before any run has been measured."""
    shape: ShapeConf | None = None
    """null = read from the model's config.json, where it is on this machine."""
    speed: SpeedConf | None = None
    """null = seconds_per_update."""


MODELS: dict[str, type] = {"tiny": TinyModelConf, "tiny_moe": TinyMoeConf, "pretrained": PretrainedModelConf}
"""By `model.kind`."""
