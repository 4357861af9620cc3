"""What is built and measured. No torch."""

from dataclasses import dataclass

BF16 = "bf16"
IMPLEMENTATIONS = ("eager", "batched_mm", "grouped_mm")
"""Ways in which transformers computes experts, in float32."""
ENGINES = (BF16, *IMPLEMENTATIONS)

VOCABULARY = 64
GROUP = 8
"""Sequences that share an advantage's mean, G."""


@dataclass(frozen=True)
class Setting:
    """Shared by all seeds."""

    engine: str = BF16
    """A: a copy in bfloat16, or the same weights in float32 by another way to compute experts."""
    delays: tuple[int, ...] = (0, 4, 64)
    """[updates] between A and C, ascending."""
    sequences: int = 48
    """Whole groups."""
    length: int = 512
    """[tokens]."""
    experts: int = 16
    top_k: int = 2
    layers: int = 4
    teaching: int = 160
    """Steps of next-token prediction."""

    @property
    def learner(self) -> str:
        """How B and C compute experts: not as the engine does."""
        return "grouped_mm" if self.engine == "eager" else "eager"
