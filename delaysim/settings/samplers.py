"""How responses are generated: the settings of each sampler, with units."""

from dataclasses import dataclass

from omegaconf import MISSING


@dataclass
class SamplerConf:
    """How responses are generated, whoever generates them."""

    kind: str = MISSING
    temperature: float = 1.0
    max_new_tokens: int = MISSING
    """Longest response [tokens]; one that reaches it is truncated."""
    chunk: int = 8
    """Groups of one launch generated together; a chunk is regenerated whole after an interruption."""
    dtype: str | None = None
    """float32 | bfloat16: precision of a copy of the weights that samples; null = hf samples with the learner's own
    weights, vllm with a copy in their precision (in bfloat16 where the learner autocasts: conf/sampler/vllm.yaml)."""
    experts_implementation: str | None = None
    """eager | batched_mm | grouped_mm: with hf, kernel of a copy of the weights that samples; null = the learner's."""


@dataclass
class HfSamplerConf(SamplerConf):
    """Sampling with transformers, in the learner's process."""

    kind: str = "hf"


@dataclass
class VllmSamplerConf(SamplerConf):
    """Sampling with a vLLM engine (docs/vllm.md)."""

    kind: str = "vllm"
    top_p: float = 1.0
    """Anything but 1 is refused: log-probabilities would be those of another distribution than the learner's."""
    top_k: int = 0
    """Anything but 0 (off) is refused, for the same reason."""
    context: int = 4096
    """Longest prompt with its response [tokens]; at most the model's own."""
    sequences: int = 256
    """Responses decoded at once."""
    prefix_cache: bool = True
    """Responses to one prompt share its prefill; emptied whenever weights are published."""
    eager: bool = False
    """On a GPU, run without CUDA graphs; a CPU always does."""
    memory_share: float = 0.4
    """On a GPU, the engine's share of the device's memory, weights and cache together."""
    sleep: int = 0
    """On a GPU, while the learner trains: 0 = stay; 1 = move weights to main memory; 2 = drop them. 1 and 2 drop the
    cache."""
    cache_gib: float = 1.0
    """On a CPU, memory for keys and values [GiB]."""
    timeout: float = 1800.0
    """Longest time for one chunk of a launch [wall seconds]; then the run ends, its state saved."""
    floor: float | None = None
    """Largest difference from the learner's log-probabilities after weights are published [nats]; null = the measured
    one of the precision (delaysim/policy/resync.py)."""


SAMPLERS: dict[str, type] = {"hf": HfSamplerConf, "vllm": VllmSamplerConf}
"""By `sampler.kind`."""
