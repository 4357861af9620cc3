"""Memory and disk of a run on one device, estimated from its settings (docs/gpu.md derives each line). No torch."""

import os
import shutil
import subprocess
from dataclasses import dataclass, fields

from delaysim.run.shape import Shape, shape_of
from delaysim.settings.config import Config
from delaysim.settings.laws import lags
from delaysim.settings.models import PretrainedModelConf

PROMPT_TOKENS = 256
"""Assumed length of a prompt."""
REMEMBERED_UP_TO = 100_000_000
"""Trained parameters up to which the previous gradient is kept (delaysim/train/gradient.py)."""
LOGIT_TABLES = 6
"""Float32 numbers per vocabulary entry of a chunk: logits, scaled, log-softmax, exp, and two gradients."""
LABELS = {"own": "sampler's weights", "kv_cache": "KV cache", "lagging": "older weights"}
OVERHEAD = 2e9
"""Of a GPU: context, kernels, fragmentation [bytes]."""


@dataclass(frozen=True)
class Footprint:
    """Bytes on the device, and of one checkpoint."""

    weights: float
    gradients: float
    optimiser: float
    remembered: float
    """The previous gradient, for its cosine or an update rule."""
    reference: float
    """A copy of the base weights for the KL penalty."""
    lagging: float
    """Weights of a sampler that lags behind, and those on their way to it."""
    casts: float
    """Autocast's bfloat16 weights, while the model runs."""
    activations: float
    """Of one micro-batch."""
    logits: float
    """Of one chunk, and the head's gradient beside the one it is added to."""
    own: float
    """The sampler's own weights, in a precision or an engine of its own."""
    kv_cache: float
    """Of the largest batch that is sampled, at full length."""
    checkpoint: float
    """On disk; while one replaces another there are two."""
    parameters: int
    trained: int

    @property
    def learner(self) -> float:
        """Peak while training, a sampler's own weights aside."""
        return self._kept + self.casts + self.activations + self.logits

    @property
    def sampling(self) -> float:
        """What sampling takes: weights of its own, or the cast ones, and the cache."""
        return (self.own or self.casts) + self.kv_cache

    @property
    def sampler(self) -> float:
        """Peak while sampling beside a learner that rests."""
        return self._kept + self.sampling

    @property
    def resting(self) -> float:
        """What the learner holds while it does not train."""
        return self._kept

    @property
    def copied(self) -> float:
        """A sampler's process has the learner's model too, to sample from or to recompute with."""
        return self.weights + self.casts

    @property
    def _kept(self) -> float:
        return self.weights + self.gradients + self.optimiser + self.remembered + self.reference + self.lagging

    @property
    def parts(self) -> dict[str, float]:
        """What is in the peaks, by name, without what takes nothing."""
        names = [field.name for field in fields(self) if field.type is float or field.type == "float"]
        found = {LABELS.get(name, name): getattr(self, name) for name in names if name != "checkpoint"}
        return {name: size for name, size in found.items() if size}


def footprint(cfg: Config) -> Footprint | None:
    """None for a model whose configuration is not on this machine or of a family that is not counted."""
    shape = shape_of(cfg.model)
    if shape is None:
        return None
    low = isinstance(cfg.model, PretrainedModelConf) and cfg.model.dtype == "bfloat16"
    rank = cfg.model.lora.rank if isinstance(cfg.model, PretrainedModelConf) else None
    kept, number = shape.parameters, 2 if low else 4
    if rank is None:
        trained, trained_number, weights = kept, number, kept * number
    else:
        trained, trained_number = shape.adapters(rank, list(cfg.model.lora.targets)), 4
        weights = kept * number + trained * 4
    remembers = trained <= REMEMBERED_UP_TO or cfg.rule.name == "gac"
    remembered = trained * trained_number if remembers else 0
    behind = _behind(cfg)
    copied, sampled_in = cfg.learner.kl > 0 and rank is None, _sampled_in(cfg, number)
    return Footprint(
        weights=weights,
        gradients=trained * trained_number,
        optimiser=2 * trained * trained_number,
        remembered=remembered,
        reference=weights if copied else 0,
        lagging=weights + (behind - 1) * trained * trained_number if behind else 0,
        casts=2 * kept if cfg.learner.autocasts and not low else 0,
        activations=_activations(cfg, shape, low),
        logits=_logits(cfg, shape, frozen=rank is not None, number=number),
        own=kept * (sampled_in or 0),
        kv_cache=_cached_token(shape, sampled_in or number) * _sampled_tokens(cfg),
        checkpoint=(3 + (0 if cfg.routing.lag else behind)) * trained * trained_number + remembered,
        parameters=kept,
        trained=trained,
    )


def _behind(cfg: Config) -> int:
    """Copies of what is trained that a sampler with older weights needs: its own, and one on the way."""
    return 0 if not lags(cfg) else 2 if cfg.clock.sync_mode == "background" else 1


def _sampled_in(cfg: Config, number: int) -> int | None:
    """Bytes of a number in the sampler's own weights; None where it samples from the learner's."""
    if cfg.sampler.dtype is not None:
        return {"float32": 4, "bfloat16": 2}[cfg.sampler.dtype]
    copied = cfg.sampler.kind == "vllm" or cfg.sampler.experts_implementation is not None
    return number if copied else None


def _cached_token(shape: Shape, number: int) -> int:
    """Bytes of one token's keys and values."""
    return 2 * shape.conf.layers * shape.key * number


def _tokens(cfg: Config) -> int:
    """Of the largest micro-batch, padding included."""
    each = PROMPT_TOKENS * (not _is_tiny(cfg)) + cfg.sampler.max_new_tokens
    whole = cfg.B * cfg.G * each
    return whole if cfg.learner.tokens is None else min(whole, max(cfg.learner.tokens, each))


def _activations(cfg: Config, shape: Shape, low: bool) -> float:
    """Per token: what each layer saves; with gradient checkpointing its input alone, and one layer's work."""
    c = shape.conf
    width = c.experts_per_token * c.expert_size if c.experts else c.intermediate
    number = 2 if low or cfg.learner.autocasts else 4
    stream = 2 if low else 4  # under autocast the residual stream stays in float32
    layer = stream * 4 * c.hidden + number * (2 * c.hidden + 4 * shape.query + 6 * shape.key + 4 * width)
    if cfg.learner.gradient_checkpointing:
        return _tokens(cfg) * (c.layers * stream * c.hidden + layer)
    return _tokens(cfg) * c.layers * layer


def _logits(cfg: Config, shape: Shape, frozen: bool, number: int) -> float:
    answered = min(_tokens(cfg), cfg.B * cfg.G * cfg.sampler.max_new_tokens)
    at_once = min(answered, cfg.learner.logits or answered)
    return shape.conf.vocabulary * (at_once * LOGIT_TABLES * 4 + (0 if frozen else shape.conf.hidden * number))


def _sampled_tokens(cfg: Config) -> int:
    """Tokens in the cache when every response of the largest batch reaches the limit."""
    prompt = 0 if _is_tiny(cfg) else PROMPT_TOKENS
    return at_once(cfg) * (prompt + cfg.sampler.max_new_tokens)


def _is_tiny(cfg: Config) -> bool:
    return not isinstance(cfg.model, PretrainedModelConf)


def peaks(cfg: Config, size: Footprint, device: float | None) -> dict[str, float]:
    """Bytes in use at most, by device. A vLLM engine has what it is given, beside the learner unless it sleeps."""
    overhead = 0.0 if cfg.devices[0] == "cpu" else OVERHEAD
    drawing = engine(cfg, size, device)
    if len(cfg.devices) == 2:
        apart = size.copied + (size.own + size.kv_cache if drawing is None else drawing)
        both = [size.learner + overhead, apart + overhead]
        return (
            {name: both[i] for i, name in enumerate(cfg.devices)} if len(set(cfg.devices)) == 2 else {"cpu": sum(both)}
        )
    if drawing is None:
        return {cfg.devices[0]: max(size.learner + size.own, size.sampler) + overhead}
    beside = size.learner + drawing if cfg.sampler.sleep == 0 else max(size.learner, size.resting + drawing)
    return {cfg.devices[0]: beside + overhead}


def engine(cfg: Config, size: Footprint, device: float | None) -> float | None:
    """Bytes of a vLLM engine, None where there is none: its share of the device, at least what one response needs."""
    if cfg.sampler.kind != "vllm":
        return None
    if cfg.devices[-1] == "cpu":
        return size.own + cfg.sampler.cache_gib * 2**30
    if device is None:
        return size.own + size.kv_cache
    return max(cfg.sampler.memory_share * device, size.own + size.kv_cache / at_once(cfg) + OVERHEAD)


def fitting_share(cfg: Config, size: Footprint, device: float) -> float | None:
    """The largest `sampler.memory_share` that fits beside the learner, in hundredths; None where none does."""
    left = device - size.learner - OVERHEAD
    least = size.own + size.kv_cache / at_once(cfg) + OVERHEAD
    return None if left < least else int(100 * left / device) / 100


def at_once(cfg: Config) -> int:
    """Responses of the largest batch that is sampled."""
    evaluated = min(cfg.evaluation.batch, cfg.evaluation.problems) * max(1, cfg.evaluation.samples)
    return max(cfg.sampler.chunk * cfg.G, evaluated)


def device_memory(cfg: Config) -> float | None:
    """Bytes of the device: `plan.memory_gb`, else this machine's; None where it has no such device."""
    if cfg.plan.memory_gb is not None:
        return cfg.plan.memory_gb * 1e9
    if cfg.devices[0] == "cpu":
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return _gpu_memory(int(cfg.devices[0].removeprefix("cuda:")))


def _gpu_memory(index: int) -> float | None:
    if shutil.which("nvidia-smi") is None:
        return None
    query = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    done = subprocess.run(query, capture_output=True, text=True)
    lines = done.stdout.split()
    return float(lines[index]) * 2**20 if done.returncode == 0 and index < len(lines) else None
