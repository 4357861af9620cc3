"""Delays by token, were weights swapped during generation: each token then has the version published when it was made.

The clock itself launches a group with one version and trains on it so; this recounts the same trace (PipelineRL,
2509.19128, swaps in this way). A response's tokens come at a uniform rate from the launch to its own end, a share
L_i / L_max of the group's duration; the longest ends when the group is done.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delaysim.clock.law import TICKS, Law
from delaysim.clock.ledger import IntArray
from delaysim.clock.trace import Column

EDGES = (0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 1023)
"""Token lags up to and including each are counted: bins 0, 1, 2-3, 4-7, ..."""
CHUNK = 1 << 16
"""Groups whose responses are laid out at once."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TokenLags:
    """Means over the trained groups, in updates. Start lags are those without swapping."""

    group_start: float
    """Mean delay, every group once; swapping leaves it to the first token alone, the oldest of its group."""
    token_start: float
    """Every token once, with its group's delay: long responses wait longer."""
    token: float
    """Every token once, with its own lag."""
    response: float
    """Every response once, with the mean lag of its tokens."""
    newest: float
    """Of the last token of a group's slowest response."""
    edges: tuple[int, ...]
    """Lags [updates] that end the bins of `histogram`; its last bin is what is older than all."""
    histogram: tuple[float, ...]
    """Share of the tokens by their own lag: up to edges[0], above that up to edges[1], ..., above edges[-1]."""


def token_lags(
    rows: Mapping[str, Column], lengths: Column, law: Law, publish: ArrayLike, edges: Sequence[int] = EDGES
) -> TokenLags:
    """Recount a finished run's delays by token.

    `rows`: columns of `group_rows`; `lengths`: [groups, G] tokens of the first groups; `publish`: tick by update.
    Raises ValueError where nothing was trained.
    """
    swaps = _Swaps(*sampler_versions(law, publish))
    trained = np.flatnonzero(rows["update"] >= 0)
    if not len(trained):
        raise ValueError("no group was trained, so no token has a lag")
    parts = [_sums(rows, lengths, trained[i : i + CHUNK], swaps, edges) for i in range(0, len(trained), CHUNK)]
    total = {name: sum(part[name] for part in parts) for name in parts[0]}
    groups, tokens = float(len(trained)), float(total["tokens"])
    below = np.concatenate([[0.0], total["below"] / tokens, [1.0]])
    return TokenLags(
        group_start=float(total["start"]) / groups,
        token_start=float(total["token_start"]) / tokens,
        token=float(total["token"]) / tokens,
        response=float(total["response"]) / groups / lengths.shape[1],
        newest=float(total["newest"]) / groups,
        edges=tuple(edges),
        histogram=tuple(float(share) for share in np.diff(below)),
    )


def sampler_versions(law: Law, publish: ArrayLike) -> tuple[IntArray, IntArray]:
    """Ticks at which the sampler gets new weights, and their versions, ascending (delaysim/clock/weights.py)."""
    ticks = np.asarray(publish, np.int64)
    if law.sync_mode == "blocking" or not law.sync_ticks:
        return ticks[law.sync_every - 1 :: law.sync_every], np.arange(1, len(ticks) + 1)[
            law.sync_every - 1 :: law.sync_every
        ]
    found: list[tuple[int, int]] = []
    wanted, free = False, 0
    for update, tick in enumerate(ticks.tolist()):
        wanted = wanted or law.syncs_after(update)
        if wanted and tick >= free:
            wanted, free = False, tick + law.sync_ticks
            found.append((free, update + 1))
    arrive, version = np.array(found, np.int64).reshape(-1, 2).T
    return arrive, version


class _Swaps:
    """The version at the sampler as a step function of time, and its integral."""

    def __init__(self, ticks: IntArray, versions: IntArray) -> None:
        self._versions = np.concatenate([[0], versions])
        self._times = np.concatenate([[0.0], ticks / TICKS])
        self._since = np.append(self._times, np.inf)
        self._since[0] = -np.inf
        self._area = np.concatenate([[0.0], np.cumsum(np.diff(self._times) * self._versions[:-1])])

    def version(self, time: Floats) -> IntArray:
        return self._versions[np.searchsorted(self._times, time, side="right") - 1]

    def area(self, time: Floats) -> Floats:
        """Integral of the version from 0 to `time` [versions * units]."""
        beyond = np.maximum(time - self._times[-1], 0.0) * self._versions[-1]
        return np.asarray(np.interp(time, self._times, self._area) + beyond)

    def since(self, version: IntArray) -> Floats:
        """When the sampler got at least this version."""
        return self._since[np.searchsorted(self._versions, version)]


def _sums(
    rows: Mapping[str, Column], lengths: Column, groups: NDArray[np.intp], swaps: _Swaps, edges: Sequence[int]
) -> dict[str, Column]:
    """Sums over some trained groups; `below`: their tokens with a lag up to each edge."""
    launch, done, update = (rows[name][groups] for name in ("launch", "done", "update"))
    tokens = lengths[groups].astype(np.float64)
    delay, longest, whole = rows["delay"][groups], tokens.max(axis=1), tokens.sum(axis=1)
    took = np.maximum(done - launch, 0.1 / TICKS)  # what takes no time is made at one instant, within one version
    own = tokens * (took / longest)[:, None]
    lag = update[:, None] - _mean_version(swaps, launch, own)
    rate = longest / took
    return {
        "tokens": whole.sum(),
        "start": delay.sum(),
        "token_start": (whole * delay).sum(),
        "token": (tokens * lag).sum(),
        "response": lag.sum(),
        "newest": (update - swaps.version(done)).sum(),
        "below": np.array([_younger(swaps.since(update - edge) - launch, own, rate, tokens) for edge in edges]),
    }


def _mean_version(swaps: _Swaps, launch: Floats, own: Floats) -> Floats:
    """Mean version over each response [groups, G]: at launch + [0, own]."""
    begin = swaps.area(launch)[:, None]
    instant = own < 1 / TICKS
    mean = (swaps.area(launch[:, None] + own) - begin) / np.where(instant, 1.0, own)
    return np.where(instant, swaps.version(launch)[:, None], mean)


def _younger(after: Floats, own: Floats, rate: Floats, tokens: Floats) -> float:
    """Tokens made later than `after` [units past the launch]."""
    made_before = np.minimum(own, np.maximum(after, 0.0)[:, None]) * rate[:, None]
    return float((tokens - np.minimum(made_before, tokens)).sum())
