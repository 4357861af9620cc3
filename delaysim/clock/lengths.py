"""Response lengths for a clock that runs alone: drawn from a law, in keyed blocks of groups."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from delaysim.clock.draws import Draws
from delaysim.clock.law import Law
from delaysim.clock.ledger import Ledger
from delaysim.clock.steps import Answer, Launch, Lengths
from delaysim.rng import stream

BLOCK = 1024
"""Groups drawn from one keyed generator; one generator per group alone would cost more than the clock."""

Lengths2D = NDArray[np.int64]


class LengthLaw(Protocol):
    """Anything that draws response lengths."""

    def draw(
        self, rng: np.random.Generator, groups: int, group_size: int, again: np.random.Generator | None = None
    ) -> Lengths2D:
        """Lengths [groups, group_size] in tokens. A smaller group_size gives a prefix of the columns.

        With `again`, another attempt: what belongs to the prompt comes from `rng` as before, the rest from `again`.
        """
        ...


@dataclass(frozen=True)
class Lognormal:
    """Lognormal lengths, part of whose log-variance is shared by the responses to one prompt."""

    mean: float
    """Mean before the cap [tokens]."""
    sigma: float
    """Standard deviation of the log-length."""
    prompt_share: float
    """Share of the log-variance that the G responses of a group have in common, 0..1."""
    cap: int
    """Longest possible response [tokens]."""

    def draw(
        self, rng: np.random.Generator, groups: int, group_size: int, again: np.random.Generator | None = None
    ) -> Lengths2D:
        shared, rest = rng.standard_normal(groups), again or rng
        own = np.stack([rest.standard_normal(groups) for _ in range(group_size)], axis=1)
        z = sqrt(self.prompt_share) * shared[:, None] + sqrt(1.0 - self.prompt_share) * own
        lengths = np.exp(log(self.mean) - self.sigma**2 / 2 + self.sigma * z)
        return np.clip(np.rint(lengths), 1, self.cap).astype(np.int64)


@dataclass(frozen=True)
class Empirical:
    """Lengths drawn with replacement from recorded ones."""

    recorded: NDArray[np.int64]
    """Lengths [tokens], any number of them."""

    def draw(
        self, rng: np.random.Generator, groups: int, group_size: int, again: np.random.Generator | None = None
    ) -> Lengths2D:
        picks = [(again or rng).integers(len(self.recorded), size=groups) for _ in range(group_size)]
        return self.recorded[np.stack(picks, axis=1)]


BY_ROW: dict[str, Callable[[Lengths2D], NDArray[Any]]] = {
    "max": lambda block: block.max(axis=1),
    "mean": lambda block: block.mean(axis=1),
    "sum": lambda block: block.sum(axis=1),
}
"""`durations.STATS` of many groups at once."""


class KeyedLengths:
    """The lengths of every prompt and attempt of a stream, drawn block by block and kept."""

    def __init__(
        self, law: LengthLaw, group_size: int, seed: int, name: str = "lengths", stat: str = "max", flat: float = 0.0
    ) -> None:
        """`stat`: the size of a group; `flat`: share of groups whose rewards are all equal."""
        self._law, self._group_size, self._seed, self._name = law, group_size, seed, name
        self._stat, self._flat, self._draws = BY_ROW[stat], flat, Draws(seed)
        self._blocks: list[Lengths2D] = []
        self._block_sizes: list[NDArray[Any]] = []
        self._sizes: list[Any] = []
        self._repeated: dict[tuple[int, int], Lengths2D] = {}

    def answer(self, law: Law, launch: Launch) -> Lengths | Answer:
        """What the clock is told of a launch."""
        sizes = self._all(launch) if law.slots is not None else self._of(launch)
        if law.zero_variance == "kept":
            return sizes
        return Answer(sizes, self._flat_of(launch))

    def longest(self, groups: range) -> list[Any]:
        """Size of each fresh prompt's first group [tokens]: by default its longest response."""
        if groups.stop > len(self._sizes):
            self._fill(groups.stop)
            for sizes in self._block_sizes[len(self._sizes) // BLOCK :]:
                self._sizes.extend(sizes.tolist())
        return self._sizes[groups.start : groups.stop]

    def sizes(self, groups: range) -> NDArray[Any]:
        """`longest` as an array; no list is made."""
        self._fill(groups.stop)
        first, last = groups.start // BLOCK, -(-groups.stop // BLOCK)
        return np.concatenate(self._block_sizes[first:last])[groups.start - first * BLOCK :][: len(groups)]

    def table(self, groups: int) -> Lengths2D:
        """Lengths [groups, G] of the first groups of so many fresh prompts."""
        self._fill(groups)
        empty = np.empty((0, self._group_size), np.int32)
        return np.concatenate([empty, *self._blocks])[:groups]

    def of_ledger(self, ledger: Ledger, groups: int) -> Lengths2D:
        """Lengths [groups, G] of the first groups of a ledger."""
        if not ledger.prompt:
            return self.table(groups)
        prompts, attempts = np.array(ledger.prompt[:groups]), np.array(ledger.attempt[:groups])
        table: Lengths2D = self.table(int(prompts.max(initial=-1)) + 1)[prompts]
        for group in np.flatnonzero(attempts):
            table[group] = self._row(int(prompts[group]), int(attempts[group]))
        return table

    def _of(self, launch: Launch) -> list[Any]:
        if isinstance(launch.prompts, range):
            return self.longest(launch.prompts)
        return [self._stat(row[None])[0].item() for row in self._rows(launch)]

    def _all(self, launch: Launch) -> list[Sequence[int]]:
        return [row.tolist() for row in self._rows(launch)]

    def _rows(self, launch: Launch) -> list[Lengths2D]:
        return [self._row(*key) for key in zip(launch.prompts, launch.attempts, strict=True)]

    def _row(self, prompt: int, attempt: int) -> Lengths2D:
        block, place = divmod(prompt, BLOCK)
        row: Lengths2D = (self._block_again(attempt, block) if attempt else self._block(block))[place]
        return row

    def _block(self, block: int) -> Lengths2D:
        self._fill((block + 1) * BLOCK)
        return self._blocks[block]

    def _block_again(self, attempt: int, block: int) -> Lengths2D:
        if (attempt, block) not in self._repeated:
            self._repeated[attempt, block] = self._draw(attempt, block)
        return self._repeated[attempt, block]

    def _fill(self, groups: int) -> None:
        while len(self._blocks) * BLOCK < groups:
            self._blocks.append(self._draw(0, len(self._blocks)))
            self._block_sizes.append(self._stat(self._blocks[-1]))

    def _draw(self, attempt: int, block: int) -> Lengths2D:
        rng = stream(self._seed, self._name, block)
        again = stream(self._seed, f"{self._name} again", attempt, block) if attempt else None
        return self._law.draw(rng, BLOCK, self._group_size, again).astype(np.int32)

    def _flat_of(self, launch: Launch) -> list[int]:
        keys = zip(launch.groups, launch.prompts, launch.attempts, strict=True)
        return [g for g, prompt, attempt in keys if self._draws.uniform("flat", prompt, attempt) < self._flat]
