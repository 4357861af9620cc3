"""Where every token went: generated = trained + dropped + in system, in integers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from delaysim.clock.ledger import FATES, NEVER, IntArray
from delaysim.clock.ticks import of_rows
from delaysim.clock.trace import Column

IN_SYSTEM = ("generating", "ready")
"""Where a group can be when the run ends: under way, or complete and not taken."""
KINDS = (*(fate for fate in FATES if fate != "never"), *IN_SYSTEM)


class Entry(NamedTuple):
    """What one kind of group adds up to."""

    groups: int
    tokens: int
    """Of whole responses. Training generates a group whole at its launch, whatever becomes of it."""
    made: int
    """Of these, the tokens a generator would have made by then: a group that is cut off, by a policy or by the end of
    the run, stops there."""


@dataclass(frozen=True)
class TokenLedger:
    """One entry per kind of group, and their sums."""

    entries: Mapping[str, Entry]
    """By KINDS; a group of no kind does not exist."""

    @property
    def trained(self) -> Entry:
        return self.entries["trained"]

    @property
    def dropped(self) -> Entry:
        """By every policy together."""
        return self._sum(kind for kind in KINDS if kind not in ("trained", *IN_SYSTEM))

    @property
    def in_system(self) -> Entry:
        """Neither trained nor dropped when the run ended."""
        return self._sum(IN_SYSTEM)

    @property
    def generated(self) -> Entry:
        return self._sum(KINDS)

    def _sum(self, kinds: Iterable[str]) -> Entry:
        return Entry(*map(sum, zip(*(self.entries[kind] for kind in kinds), strict=True)))


def token_ledger(rows: Mapping[str, Column], lengths: Column, due: IntArray, end: int) -> TokenLedger:
    """Close the books of a run.

    `rows`: columns of `group_rows`. `lengths`: [groups, G] tokens of the groups that were generated, which are the
    first ones. `due`: [groups] tick at which the generation of each ends, reached or not; NEVER where nobody knows,
    and then a group that was cut off counts no made token. `end`: tick at which the run ended.
    """
    count = len(lengths)
    kind = kinds(rows)[:count]
    whole = lengths.sum(axis=1, dtype=np.int64)
    made = tokens_made(rows, lengths, due, end)
    found = ((name, kind == index) for index, name in enumerate(KINDS))
    return TokenLedger({name: Entry(int(of.sum()), int(whole[of].sum()), int(made[of].sum())) for name, of in found})


def kinds(rows: Mapping[str, Column]) -> NDArray[np.int64]:
    """Per group an index into KINDS."""
    by_fate = np.array([KINDS.index(fate) if fate in KINDS else NEVER for fate in FATES])
    where = np.where(np.isnan(rows["done"]), *(KINDS.index(kind) for kind in IN_SYSTEM))
    known = by_fate[rows["fate"]]
    return np.where(known == NEVER, where, known)


def tokens_made(rows: Mapping[str, Column], lengths: Column, due: IntArray, end: int) -> IntArray:
    """Per group the tokens a generator would have made of it [tokens].

    Responses run side by side at one rate, the longest over the whole duration of the group: after a share x of it
    response i has min(L_i, floor(x * L_max)) tokens.
    """
    made: IntArray = lengths.sum(axis=1, dtype=np.int64)
    cut = np.flatnonzero(np.isnan(rows["done"][: len(lengths)]))
    times = {name: rows[name][cut] for name in ("launch", "dropped")}
    launch, until, ends = of_rows(times, "launch", NEVER), of_rows(times, "dropped", end), due[cut]
    duration = np.maximum(ends - launch, 1)
    reached = lengths[cut].max(axis=1, initial=0).astype(np.int64) * np.minimum(until - launch, duration) // duration
    reached[ends == NEVER] = 0
    made[cut] = np.minimum(lengths[cut], reached[:, None]).sum(axis=1)
    return made
