"""The log-ratio between engines as a sum of parts: pure arithmetic on log-probabilities. No torch."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
REPLAYS = ("none", "r2", "r3")


@dataclass(frozen=True)
class Passes:
    """Log-probabilities [sequences, T] of the same tokens [nats]; C_B is C with B's experts.

    A is the rollout engine, B the recomputation with the same weights, C the update's weights.
    """

    a: Array
    b: Array
    b_a: Array
    c: Array
    c_b: Array
    c_a: Array
    flips: Mapping[str, NDArray[np.int8]]
    """By pair ("ab", "bc", "ac"): [sequences, T, layers] 1 where their routers choose other experts; {} if dense."""

    def log_ratios(self, replay: str) -> dict[str, Array]:
        """Of the pairs under one of REPLAYS. R2: C uses B's experts; R3: B and C use A's."""
        b, c = {"none": (self.b, self.c), "r2": (self.b, self.c_b), "r3": (self.b_a, self.c_a)}[replay]
        return {"ab": b - self.a, "bc": c - b, "ac": c - self.a}

    def parts(self) -> dict[str, Array]:
        """Whose sum is the log-ratio A to C without replay.

        engine: A to B, and drift: B to C, all with A's experts; routing: C's own experts in place of A's.
        """
        return {"engine": self.b_a - self.a, "drift": self.c_a - self.b_a, "routing": self.c - self.c_a}
