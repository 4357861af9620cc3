"""How weights reach an engine in another process. No torch."""

from typing import Any

from delaysim.settings.config import MEASURED

NCCL, GLOO = "nccl", "gloo"


def carrier(cfg: Any) -> str | None:
    """NCCL between two GPUs, Gloo's sockets elsewhere; None = through main memory alone.

    Either needs both processes at once; in the suite `measured` the learner does not wait for the sampler.
    """
    if cfg.sampler.kind != "vllm" or len(cfg.devices) == 1 or cfg.suite_name == MEASURED:
        return None
    learner, engine = cfg.devices
    return NCCL if learner != engine and "cpu" not in cfg.devices else GLOO
