"""Whether what is trained is a fair sample of what was generated: lengths, rewards, any number per response.

A group that is still in the system when the run ends was not dropped: its fate is unknown. It is a fate of its own
("never"), and is kept out where the question is what a drop policy does (docs/length_bias.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from delaysim.clock.ledger import FATES, STILL_THERE, TRAINED
from delaysim.clock.trace import Column

PARTS = 10
"""Survival is given for each tenth of what was generated, from the smallest values to the largest."""
FOLLOWED = 99
"""A group counts in the steady state where the run goes on for the time in which this percentage is decided."""
PIECE = 1 << 15
"""Groups whose values are counted at once: NumPy selects and counts on copies."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Tilt:
    """How the trained part of a population differs from the whole of it, in one quantity."""

    generated: float
    """Mean over everything generated."""
    trained: float
    """Mean over what was trained."""
    parts: Mapping[str, float]
    """What each fate other than "trained" adds to `ratio` - 1: their sum is exactly that."""
    shares: Mapping[str, float]
    """Share of the groups that met each fate, 0..1; fates that nobody met are left out."""
    means: Mapping[str, float]
    """Mean by fate."""
    chance: float
    """Standard error of `ratio` if fates had nothing to do with the quantity: groups drawn without replacement."""
    survival: tuple[float, ...]
    """Share trained, for each tenth of the generated values in order of size."""
    ks: float
    """Kolmogorov-Smirnov distance of the trained from the generated values, 0..1."""

    @property
    def ratio(self) -> float:
        """Trained over generated mean; NaN where the latter is not positive."""
        return self.trained / self.generated if self.generated > 0 else float("nan")


def tilt(values: Column, fate: Column) -> Tilt:
    """Compare the trained groups with all of them.

    `values`: [groups, G], a number per response. `fate`: [groups], an index into FATES; all groups of it are one
    population. The parts follow from m_all = sum over fates of share * mean:
    ratio - 1 = sum over fates f but trained of share_f * (1 - m_f / m_all) / share_trained.
    """
    return _tilt(_codes(values), values.mean(axis=1), fate, np.ones(len(values), bool))


def _tilt(codes: Column, means: Column, fate: Column, among: Mask) -> Tilt:
    """`tilt` of some of the groups, by the `_codes` and the row means of all: no part of the table is copied."""
    kept = fate == TRAINED
    total, alive = _cumulative(codes, among & kept, among & ~kept)
    means, fate = means[among], fate[among]
    found = [(name, fate == index) for index, name in enumerate(FATES) if (fate == index).any()]
    share = {name: float(mask.mean()) for name, mask in found}
    mean = {name: float(means[mask].mean()) for name, mask in found}
    generated = float(means.mean()) if len(means) else float("nan")
    trained = share.get("trained", 0.0)
    lost = [name for name in share if name != "trained"]
    return Tilt(
        generated=generated,
        trained=mean.get("trained", float("nan")),
        parts={name: _over(share[name] * (1.0 - _over(mean[name], generated)), trained) for name in lost},
        shares=share,
        means=mean,
        chance=_chance(means, int((fate == TRAINED).sum())),
        survival=_survival(total, alive),
        ks=_distance(total, alive),
    )


def _over(a: float, b: float) -> float:
    return a / b if b > 0 else float("nan")


def _chance(means: Column, trained: int) -> float:
    """Relative standard error of the mean of `trained` groups drawn from all of these without replacement."""
    groups = len(means)
    if trained == 0 or groups < 2 or not means.mean() > 0:
        return float("nan")
    spread = float(means.std(ddof=1) / means.mean())
    return spread * float(np.sqrt((1.0 - trained / groups) / trained))


def _codes(values: Column) -> Column:
    """The values as integers in the same order, from 0."""
    if values.dtype.kind != "f":
        return values
    return np.asarray(np.unique(values, return_inverse=True)[1].reshape(values.shape))


def _cumulative(codes: Column, kept: Mask, gone: Mask) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Responses, and trained responses, up to and including each value in order; both start with 0."""
    size = int(codes.max(initial=0)) + 1
    survived, lost = (_counts(codes, among, size) for among in (kept, gone))
    total, alive = (np.concatenate([[0], np.cumsum(count)]) for count in (survived + lost, survived))
    return total, alive


def _counts(codes: Column, among: Mask, size: int) -> NDArray[np.int64]:
    """How often each of 0..size-1 occurs in some of the groups."""
    count = np.zeros(size, np.int64)
    for start in range(0, len(codes), PIECE):
        part = slice(start, start + PIECE)
        count += np.bincount(codes[part][among[part]].ravel(), minlength=size)
    return count


def _survival(total: NDArray[np.int64], alive: NDArray[np.int64]) -> tuple[float, ...]:
    """Share trained of each tenth; equal values that span several tenths are spread evenly over them."""
    edges = np.linspace(0, total[-1], PARTS + 1)
    trained = np.diff(np.interp(edges, total, alive))
    return tuple(float(_over(count, total[-1] / PARTS)) for count in trained)


def _distance(total: NDArray[np.int64], alive: NDArray[np.int64]) -> float:
    if not alive[-1]:
        return float("nan")
    return float(np.abs(total / total[-1] - alive / alive[-1]).max())


@dataclass(frozen=True)
class Bias:
    """One quantity over three populations of groups; docs/length_bias.md says which answers what."""

    run: Tilt
    """Every group generated. Start and end of the run count: it trains short groups first and ends before long ones."""
    decided: Tilt
    """Groups that were trained or dropped. Without a drop policy the ratio is 1."""
    steady: Tilt | None
    """Groups launched after the start had worn off and early enough to be decided; None in a run too short for it."""
    first: float
    """Mean over the first groups of the prompts of `policy`: what training would see if each were trained on.

    It differs from what was generated where dropped prompts are launched again, since those are long.
    """

    @cached_property
    def policy(self) -> Tilt:
        """Where to read what the drop policies do: the steady state, in a short run what was decided."""
        return self.decided if self.steady is None else self.steady

    @property
    def fresh_ratio(self) -> float:
        """Trained mean over that of the prompts' first groups."""
        return _over(self.policy.trained, self.first)


def bias(rows: Mapping[str, Column], values: Column, look_ahead: int | None) -> Bias:
    """Trained against generated, for a number per response.

    `rows`: columns of `group_rows`. `values`: [groups, G] of the groups that were generated, which are the first ones;
    their `max(axis=1, keepdims=True)` gives the same for the slowest response. `look_ahead` [updates], None = no gate.
    """
    fate = rows["fate"][: len(values)]
    decided, window = fate != STILL_THERE, steady(rows, look_ahead)[: len(values)]
    followed = bool((fate[window] == TRAINED).any())
    codes, means = _codes(values), values.mean(axis=1)

    def among(which: Mask) -> Tilt:
        return _tilt(codes, means, fate, which)

    return Bias(
        run=among(np.ones_like(decided)),
        decided=among(decided),
        steady=among(window) if followed else None,
        first=_mean_of(values, (window if followed else decided) & (rows["attempt"][: len(values)] == 0)),
    )


def _mean_of(values: Column, which: Mask) -> float:
    return float(values[which].mean()) if which.any() else float("nan")


def steady(rows: Mapping[str, Column], look_ahead: int | None) -> Mask:
    """Groups launched past the first look_ahead + 1 updates, and followed for long enough to be decided.

    Membership depends on the launch alone, so that it selects no lengths. Without a gate the mean delay stands for the
    look-ahead.
    """
    launch = rows["launch"]
    ended = np.fmin(rows["consumed"], rows["dropped"])
    if np.isnan(ended).all():
        return np.zeros(len(launch), bool)
    first = look_ahead if look_ahead is not None else float(rows["delay"][rows["delay"] >= 0].mean())
    patience = np.nanpercentile(ended - launch, FOLLOWED)
    return np.asarray((rows["version"] > first) & (launch + patience <= np.nanmax(ended)))
