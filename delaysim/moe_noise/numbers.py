"""What is said of one seed and delay: numbers by name. No torch."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from delaysim.moe_noise.parts import REPLAYS, Array, Passes
from delaysim.moe_noise.slopes import slope_of_mean

LEVELS: dict[str, Callable[[Array], Array]] = {
    "token": lambda table: table,
    "sequence": lambda table: table.mean(1),
    "product": lambda table: table.sum(1),
}
"""[sequences, T] per-token log-ratios as those of tokens, of sequence means, of trajectory products."""


class Number(NamedTuple):
    """One value, with an interval where it has one."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None


def numbers(passes: Passes, seed: int) -> list[Number]:
    """All of them; a slope is left out where there is nothing to fit."""
    return [*_flips(passes), *_pairs(passes), *_spreads(passes), *_slopes(passes, seed)]


def k3(log_ratio: Array) -> float:
    """Mean of r - 1 - log r over tokens: Schulman's estimate of a token's KL divergence [nats]."""
    return float((np.expm1(log_ratio) - log_ratio).mean())


def _flips(passes: Passes) -> Iterator[Number]:
    for pair, table in passes.flips.items():
        yield Number(f"flips_{pair}", float((table == 1).mean()))
        yield Number(f"flips_{pair}_tokens", float((table == 1).any(-1).mean()))


def _pairs(passes: Passes) -> Iterator[Number]:
    """Distances and tails of every pair under every replay."""
    for replay in REPLAYS:
        for pair, table in passes.log_ratios(replay).items():
            size = np.abs(table)
            yield Number(f"k3_{pair}_{replay}", k3(table))
            yield Number(f"p99_{pair}_{replay}", float(np.quantile(size, 0.99)))
            yield Number(f"max_{pair}_{replay}", float(size.max()))
            yield Number(f"product_{pair}_{replay}", float(LEVELS["product"](table).std(ddof=1)))


def _spreads(passes: Passes) -> Iterator[Number]:
    for part, table in (*passes.parts().items(), ("total", passes.c - passes.a)):
        yield Number(f"mean_{part}", float(table.mean()))
        for level, of in LEVELS.items():
            yield Number(f"std_{part}_{level}", float(of(table).std(ddof=1)))


def _slopes(passes: Passes, seed: int) -> Iterator[Number]:
    for part, table in (*passes.parts().items(), ("total", passes.c - passes.a)):
        slope, size = (slope_of_mean(table, seed, about_zero) for about_zero in (False, True))
        if slope is not None and size is not None:
            yield Number(f"slope_{part}_mean", *slope)
            yield Number(f"slope_{part}_product", *slope.of_sum())
            yield Number(f"slope_{part}_rms", *size)
