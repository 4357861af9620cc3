"""How a mixture of experts is routed: the settings. No torch."""

from dataclasses import dataclass
from typing import Any

NONE, R2, R3 = REPLAYS = ("none", "r2", "r3")


@dataclass
class RoutingConf:
    """Which experts an update uses (docs/moe.md)."""

    replay: str = NONE
    """none: those that the router chooses; r2: those of the learner's forward pass at launch; r3: those of the sampler,
    in that pass too (2510.11370)."""
    lag: int = 0
    """The sampler's routers are so many updates older than the rest of its weights."""
    record: bool = False
    """Compare the experts that sampler, forward pass at launch and update use (columns flips_*)."""

    @property
    def watched(self) -> bool:
        """Whether anybody needs to know who used which experts."""
        return self.record or self.replay != NONE


def names_experts(device: str, sampler: Any) -> bool:
    """Whether a vLLM engine on a device can say which experts it used (vllm/config/aux_output.py of 0.32).

    It needs vLLM's second model runner, which a CPU lacks for want of Triton, and the prefix cache, by whose blocks the
    experts of tokens that are not computed again are kept.
    """
    return device != "cpu" and bool(sampler.prefix_cache)
