"""Where passes over the same tokens use other experts: sampler, the learner's pass at launch, and the update."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from delaysim.policy.layout import Row, filled
from delaysim.policy.rollout import Group, Response, Routes
from delaysim.policy.routing import MISSING
from delaysim.settings.routing import R2, R3

Compared = NDArray[np.int8]
"""[tokens, layers] 1 = other experts, 0 = the same set, -1 = not known; at positions that predict the response."""


@dataclass(frozen=True)
class Flips:
    """Of every response of a mini-batch, by what is compared.

    `engine`: sampler and pass at launch, the same weights; `drift`: that pass and the update; `whole`: sampler and
    update; `live`: what the update used and what its own routers chose, which differ under replay.
    """

    by_group: Sequence[Mapping[str, Sequence[Compared]]]

    def update_columns(self) -> dict[str, float]:
        """Columns of a row of `updates`."""
        names = dict.fromkeys(name for group in self.by_group for name in group)
        return _columns({name: [r for group in self.by_group for r in group.get(name, ())] for name in names})

    def group_columns(self) -> list[dict[str, float]]:
        """The same of each group, columns of the rows of `groups`."""
        return [_columns(group) for group in self.by_group]


def replayed(response: Response, replay: str) -> Routes | None:
    """The experts that an update uses again."""
    return {R2: response.recomputed_routes, R3: response.routes}.get(replay)


def flips_of(groups: Sequence[Group], rows: Sequence[Row], chosen: Mapping[int, Routes]) -> Flips | None:
    """None where the update's experts are not recorded.

    `rows` are the responses in order as they were scored, `chosen` what the routers chose for each.
    """
    if not chosen:
        return None
    found, first = [], 0
    for group in groups:
        numbers = range(first, first + len(group.responses))
        pairs = [dict(_pairs(r, rows[i], chosen[i])) for i, r in zip(numbers, group.responses, strict=True)]
        found.append({name: [flips[name] for flips in pairs] for name in pairs[0]})
        first = numbers.stop
    return Flips(found)


def compared(a: Routes, b: Routes) -> Compared:
    """Whether two records [tokens, layers, experts per token] have the same experts, in whatever order."""
    known = (a != MISSING).all(-1) & (b != MISSING).all(-1)
    return np.where(known, (np.sort(a) != np.sort(b)).any(-1), -1).astype(np.int8)


def _pairs(response: Response, row: Row, chosen: Routes) -> Iterator[tuple[str, Compared]]:
    used = chosen if row.routes is None else filled(row.routes, chosen)
    sampler, launch = response.routes, response.recomputed_routes
    size = len(response.tokens)
    for name, a, b in (
        ("engine", sampler, launch), ("drift", launch, used), ("whole", sampler, used), ("live", used, chosen),
    ):  # fmt: skip
        if a is not None and b is not None:
            yield name, compared(a[-size:], b[-size:])


def _columns(flips: Mapping[str, Sequence[Compared]]) -> dict[str, float]:
    """Share of (token, layer) pairs with other experts, and of tokens with any."""
    found = {}
    for name, responses in flips.items():
        table = np.concatenate(responses)
        found[f"flips_{name}"] = float((table == 1).sum() / max(1, (table >= 0).sum()))
        found[f"flips_{name}_tokens"] = float((table == 1).any(-1).sum() / max(1, (table >= 0).any(-1).sum()))
    return found
