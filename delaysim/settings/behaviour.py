"""Whose log-probabilities count as those of the behaviour policy. No torch.

At launch the behaviour policy's weights are at hand, the learner's or those of a sampler that lags behind it, so one
more forward pass gives its exact log-probabilities; what the sampler reports beside them differs by its own arithmetic.
Where both are one float32 model on one engine they agree to rounding: the sampled ones then stand for the recomputed
ones and no pass is spent.
"""

from typing import Any

from delaysim.settings.routing import R2

AUTO, RECOMPUTED, SAMPLER = BEHAVIOURS = ("auto", "recomputed", "sampler")


def apart(cfg: Any) -> bool:
    """Whether sampler and learner compute with different precision, kernels or copies of the weights."""
    low = getattr(cfg.model, "dtype", None) == "bfloat16" or cfg.learner.autocasts
    copied = cfg.sampler.dtype is not None or cfg.sampler.experts_implementation is not None
    return cfg.sampler.kind != "hf" or copied or low


def recomputes(cfg: Any) -> bool:
    """Whether the learner scores every launch too, so that the difference, or the experts, can be recorded."""
    return apart(cfg) or cfg.behaviour == RECOMPUTED or cfg.routing.replay == R2


def behaviour(cfg: Any) -> str:
    """Recomputed | sampler: what the estimator sees."""
    return RECOMPUTED if cfg.behaviour == AUTO else str(cfg.behaviour)
