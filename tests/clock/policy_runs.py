"""Finished runs of laws with any mixture of policies, for properties that hold of all of them."""

from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np
from clock.cases import laws
from hypothesis import assume
from hypothesis import strategies as st

from delaysim.clock import Law, Stalled
from delaysim.clock.ledger import Ledger
from delaysim.clock.lengths import Empirical, KeyedLengths
from delaysim.clock.trace import group_rows, run_alone

POLICIES = {
    "order": st.sampled_from(["completion", "submit", "version", "lifo", "freshest", "random", "shortest", "in_order"]),
    "queue_drop": st.sampled_from([None, 1.0, 2.0]),
    "age_max": st.sampled_from([None, 1, 3]),
    "abort_age": st.sampled_from([None, 2, 4]),
    "timeout": st.sampled_from([None, 2.0, 5.0]),
    "requeue": st.booleans(),
    "noise": st.sampled_from([0.0, 0.5]),
    "zero_variance": st.sampled_from(["kept", "replaced"]),
    "start": st.sampled_from(["burst", "stagger", "ramp"]),
    "arrivals": st.sampled_from([None, 2.0]),
    "sync_time": st.sampled_from([0.0, 0.7, 3.0]),
    "sync_mode": st.sampled_from(["blocking", "background"]),
    "sync_every": st.integers(1, 3),
    "steps": st.integers(1, 2),
    "reward_lag": st.sampled_from([0.0, 1.5]),
    "replay": st.sampled_from([0.0, 0.5]),
    "replay_window": st.sampled_from([1, 3]),
    "slots": st.sampled_from([None, 2, 5]),
    "look_ahead": st.just(None),
}
"""Values of the settings of a law beyond the plain ones."""


@dataclass(frozen=True)
class Run:
    """One finished run of groups of three."""

    law: Law
    ledger: Ledger
    rows: dict[str, Any]
    lengths: np.ndarray

    @property
    def end(self) -> int:
        return self.ledger.publish[-1]


@st.composite
def runs(draw: Any) -> Run:
    """Runs of which most have two or three policies."""
    names = draw(st.sets(st.sampled_from(sorted(POLICIES)), max_size=4))
    drawn = replace(draw(laws()), n_updates=draw(st.integers(1, 8)), group_size=3)
    law = accepted(replace(drawn, **{name: draw(POLICIES[name]) for name in names}))
    return run(law, draw(st.lists(st.integers(1, 6), min_size=1, max_size=9)), draw(st.integers(0, 99)))


def accepted(law: Law) -> Law:
    """The nearest law that a configuration accepts."""
    if law.slots is not None:
        law = replace(law, lam=0.0, noise=0.0, workers=None, order="completion", c_gen=max(law.c_gen, 0.5))
    if law.look_ahead is None:
        assume(law.workers is not None or law.slots is not None)
        law = replace(law, start="burst", c_gen=max(law.c_gen, 0.5))
    return law if 0 < law.replayed < law.groups_per_update else replace(law, replay=0.0)


def run(law: Law, pool: list[int], seed: int) -> Run:
    """Run a law on lengths from a pool; what starves for its own limits is no example."""
    lengths = KeyedLengths(Empirical(np.array(pool)), 3, seed, stat=law.stat, flat=0.3)
    try:
        with patch("delaysim.clock.loop.STARVED", 200):
            ledger = run_alone(law, lengths, seed).ledger
    except Stalled:
        assume(False)
    generated = min(len(ledger), law.consumable or len(ledger))
    return Run(law, ledger, group_rows(ledger), lengths.of_ledger(ledger, generated))
