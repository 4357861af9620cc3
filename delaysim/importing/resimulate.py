"""A log's lengths through delaysim's clock: the delays that happened next to the delays that the clock gives."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from delaysim.clock import Clock, Law, Stalled
from delaysim.clock.trace import group_rows
from delaysim.importing.ledger import Floats, Groups, Ledger
from delaysim.importing.summary import distance, spread

MOST_GROUPS = 5_000_000
"""Groups that are simulated at most."""
TRIES = 12
"""Look-aheads that are tried to meet a mean delay."""


class Impossible(Exception):
    """The log does not say enough to simulate it; the text says what is missing."""


@dataclass(frozen=True)
class Resimulated:
    """A law, and what it gives beside what happened [updates]."""

    law: Law
    given: Mapping[str, Any]
    """Of it, the fields that were asked for."""
    fitted: bool
    """Whether the look-ahead was chosen so that the mean delays agree."""
    cost: str
    """Where C_gen comes from: given, times of the log, or balance between generation and learner."""
    sizes: str
    """tokens, or seconds where the log has no lengths."""
    first_update: int
    realised: dict[str, float]
    simulated: dict[str, float]
    distance: float
    """Kolmogorov-Smirnov distance between the two."""
    notes: tuple[str, ...]
    """What is not comparable."""


def resimulate(ledger: Ledger, given: Mapping[str, Any], groups_per_update: int | None, inferred: bool) -> Resimulated:
    """Run the clock with the log's lengths over the log's updates.

    `given`: fields of the law; where they lack the look-ahead it is fitted, where they lack C_gen it is measured.
    Raises Impossible.
    """
    groups = ledger.groups
    realised = groups.delay[np.isfinite(groups.delay)]
    if not len(realised):
        raise Impossible("the log has no delays of groups: versions and consuming updates, or times and --B, give them")
    kind, of_groups, reference = _sizes(ledger, groups)
    sizes = of_groups[np.isfinite(of_groups)]
    first, last = (int(edge(groups.update[np.isfinite(groups.update)])) for edge in (np.min, np.max))
    each = groups_per_update or int(np.median(_per_update(groups)))
    if (last + 1) * each > MOST_GROUPS:
        raise Impossible(f"{last + 1} updates of {each} groups are more than {MOST_GROUPS:,} groups")
    base = Law(last + 1, each, 0, 1.0, 1.0, lam=1.0, l_ref=reference)
    law = replace(base, **given)
    cost = "given" if "c_gen" in given else "times" if (law := _costed(law, groups, of_groups)).c_gen else "balance"
    fitted = "look_ahead" not in given
    if fitted:
        law = _fitted(law, sizes, float(realised.mean()), first, cost)
    elif cost == "balance":
        law = _balanced(law, sizes)
    delays = _delays(law, sizes, first)
    numbers = spread(realised) or {}, spread(delays) or {}
    notes = tuple(_notes(ledger, groups, law, kind, cost, inferred, first))
    return Resimulated(law, dict(given), fitted, cost, kind, first, *numbers, distance(realised, delays), notes)


def _sizes(ledger: Ledger, groups: Groups) -> tuple[str, Floats, float]:
    """Longest response of each group in the order of launch, and the mean response: tokens, or else milliseconds."""
    if np.isfinite(groups.longest).any():
        return "tokens", groups.longest, float(np.nanmean(ledger["tokens"]))
    taken = np.rint(1000 * (groups.done - groups.submit))
    if not (taken > 0).any():
        raise Impossible("the log has neither lengths nor times of generation")
    return "seconds", taken, float(np.nanmean(1000 * (ledger["done_t"] - ledger["submit_t"])))


def _per_update(groups: Groups) -> Floats:
    _, counts = np.unique(groups.update[np.isfinite(groups.update)], return_counts=True)
    return counts.astype(np.float64)


def _costed(law: Law, groups: Groups, sizes: Floats) -> Law:
    """With C_gen as the log's times have it; 0 where it has none."""
    seconds, update = groups.done - groups.submit, _seconds_of_an_update(groups)
    known = np.isfinite(seconds) & np.isfinite(sizes)
    if update is None or not known.any():
        return replace(law, c_gen=0.0)
    return replace(law, c_gen=float(seconds[known].mean()) / update / _stretched(law, sizes[known]) * law.c_update)


def _seconds_of_an_update(groups: Groups) -> float | None:
    """From one update to the next over the second half of the log, by the completion of their last groups [s]."""
    known = np.isfinite(groups.update) & np.isfinite(groups.done)
    updates = np.unique(groups.update[known])
    if len(updates) < 3:
        return None
    middle, last = updates[len(updates) // 2], updates[-1]
    ends = [groups.done[known & (groups.update == update)].max() for update in (middle, last)]
    seconds = float((ends[1] - ends[0]) / (last - middle)) if last > middle else 0.0
    return seconds if seconds > 0 else None


def _stretched(law: Law, sizes: Floats) -> float:
    """Mean duration of a group over that of a response of reference length."""
    law = replace(law, c_gen=1000.0)
    one = replace(law, c_gen=1000.0)
    return float(np.mean([one.duration(size) for size in sizes.tolist()]) / one.duration(law.l_ref))


def _balanced(law: Law, sizes: Floats) -> Law:
    """With C_gen at which generation keeps the learner busy, but no more."""
    eta = 1 if law.look_ahead is None else max(1, law.look_ahead)
    return replace(law, c_gen=eta * law.c_update / _stretched(law, sizes))


def _fitted(law: Law, sizes: Floats, mean: float, first: int, cost: str) -> Law:
    """With the whole look-ahead whose mean delay over the same updates comes closest."""
    tried: dict[int, tuple[float, Law]] = {}
    eta = round(mean)
    for _ in range(TRIES):
        if eta in tried:
            break
        trial = replace(law, look_ahead=eta)
        trial = _balanced(trial, sizes) if cost == "balance" else trial
        found = float(_delays(trial, sizes, first).mean())
        tried[eta] = abs(found - mean), trial
        eta = max(0, eta + (round(mean - found) or (1 if mean > found else -1)))
    return min(tried.values(), key=lambda pair: pair[0])[1]


def _delays(law: Law, sizes: Floats, first: int) -> Floats:
    """Delays of the groups that the clock trains on from update `first` on.

    A prompt has the length of the log's group at its place, again where it is launched again; lengths start over.
    """
    lengths = sizes.astype(int).tolist()
    clock = Clock(law)
    steps, answer = clock.steps(), None
    try:
        while True:
            launch = steps.send(answer).launch
            answer = None if launch is None else [lengths[prompt % len(lengths)] for prompt in launch.prompts]
    except StopIteration:
        rows = group_rows(clock.ledger)
    except Stalled as reason:
        raise Impossible(f"with this law {reason}") from None
    return rows["delay"][rows["update"] >= first].astype(np.float64)


def _notes(ledger: Ledger, groups: Groups, law: Law, kind: str, cost: str, inferred: bool, first: int) -> Iterator[str]:
    """What keeps the two columns from being one and the same thing."""
    if inferred:
        yield "the realised delays are inferred from times, with updates that take none: lower bounds"
    if cost == "balance":
        yield "the log has no times: C_gen is taken so that generation and learner are in balance"
    if kind == "seconds":
        yield "the log has no lengths: durations stand in for them"
    lost = 1 - groups.kept.mean()
    if lost and not law.drops:
        yield f"{lost:.1%} of the groups did not reach training; the clock as simulated drops none"
    first_and_last = np.isfinite(ledger["version_start"]) & np.isfinite(ledger["version_end"])
    moved = (ledger["version_end"] > ledger["version_start"])[first_and_last]
    if moved.any():
        yield f"{moved.mean():.0%} of the responses span several versions; both columns count from the first token"
    per_update = _per_update(groups)
    if per_update.min() != per_update.max():
        yield f"updates of {per_update.min():.0f} to {per_update.max():.0f} groups; simulated {law.groups_per_update}"
    if first:
        yield f"the log begins at update {first}: the clock runs the updates before it too, and leaves them out"
