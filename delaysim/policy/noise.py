"""Sampling noise: one Gumbel vector per (group, response, position), so that runs share it whatever they differ in."""

from collections.abc import Sequence

import numpy as np
import torch

from delaysim.rng import stream

BLOCK_ELEMENTS = 1 << 22
"""Noise drawn ahead at most, over all rows."""
BLOCK_POSITIONS = 16


class GumbelNoise:
    """Noise of a batch of rows, each with a stream of its own; positions must be asked for in order."""

    def __init__(self, seed: int, name: str, keys: Sequence[tuple[int, ...]], vocabulary: int) -> None:
        self._generators = [stream(seed, name, *key) for key in keys]
        self._vocabulary = vocabulary
        fits = BLOCK_ELEMENTS // max(1, len(keys) * vocabulary)
        self._positions = max(1, min(BLOCK_POSITIONS, fits))
        self._block = torch.empty(0)
        self._start = -self._positions

    def at(self, position: int) -> torch.Tensor:
        """[rows, vocabulary] standard Gumbel noise of one position, over the rows still kept."""
        if position >= self._start + self._positions:
            self._start = position
            shape = (self._positions, self._vocabulary)
            uniform = np.stack([generator.random(shape) for generator in self._generators], axis=1)
            self._block = torch.from_numpy(uniform).log_().neg_().log_().neg_().float()
        return self._block[position - self._start]

    def keep(self, rows: Sequence[int], index: torch.Tensor) -> None:
        """Go on with these rows only (the same choice as a list and as an index tensor)."""
        self._generators = [self._generators[row] for row in rows]
        self._block = self._block[:, index]
