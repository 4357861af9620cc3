"""A clock run alone, and what a finished ledger says: one row per group, and the moments of the delay."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delaysim.clock.law import TICKS, Law
from delaysim.clock.ledger import NEVER, Ledger
from delaysim.clock.lengths import KeyedLengths
from delaysim.clock.loop import Clock

Column = NDArray[Any]
PERCENTILES = (5, 50, 95, 99)
TIMES = ("submit", "launch", "done", "ready", "consumed", "dropped")


def run_alone(law: Law, lengths: KeyedLengths, seed: int = 0) -> Clock:
    """Run the clock to its end with drawn lengths. Raises `Stalled`."""
    clock = Clock(law, seed)
    steps = clock.steps()
    reply = None
    try:
        while True:
            launch = steps.send(reply).launch
            reply = None if launch is None else lengths.answer(law, launch)
    except StopIteration:
        return clock


def group_rows(ledger: Ledger) -> dict[str, Column]:
    """Columns over groups: times in sim units (NaN = did not happen), delays in updates (-1 = not trained).

    delay = pre_queue + in_queue: the updates published until the group was ready, then while it waited.
    """
    c = ledger.columns()
    small = {name: c.pop(name).astype(np.int32) for name in ("prompt", "attempt", "version", "ready_version", "update")}
    update, version, ready = small["update"], small["version"], small["ready_version"]
    waited = {"delay": update - version, "pre_queue": ready - version, "in_queue": update - ready}
    return {
        "group": np.arange(len(ledger), dtype=np.int32),
        **{name: small[name] for name in ("prompt", "attempt", "version")},
        **{name: _units(c.pop(name)) for name in TIMES},
        **{name: small[name] for name in ("ready_version", "update")},
        **{name: np.where(update == NEVER, np.int32(NEVER), value) for name, value in waited.items()},
        "fate": c["fate"].astype(np.int8),
    }


def _units(ticks: NDArray[np.int64]) -> Column:
    times = ticks / TICKS
    times[ticks == NEVER] = np.nan
    return times


def moments(rows: Mapping[str, Column], law: Law, sim_time: float) -> dict[str, float]:
    """The delay distribution, over the whole run and in the steady state (update >= 2*(eta+1)).

    delay4_* is the mean of delay^4, the moment in GMC-GRPO's Theorem 1. busy is the learner's share of sim time.
    """
    update, delay = rows["update"], rows["delay"].astype(np.float64)
    trained = update != NEVER
    steady = trained & (update >= law.steady_from)
    run = delay[trained]
    result = {
        "sim_time": sim_time,
        "delay_mean": float(run.mean()),
        "delay_mean_steady": _mean(delay[steady]),
        "delay_sd": float(run.std()),
        **{f"delay_p{p}": float(at) for p, at in zip(PERCENTILES, np.percentile(run, PERCENTILES), strict=True)},
        "delay_max": float(run.max()),
        "delay4_mean": _mean(run**4),
        "delay4_mean_steady": _mean(delay[steady] ** 4),
        "pre_queue_mean": _mean(rows["pre_queue"][trained]),
        "in_queue_mean": _mean(rows["in_queue"][trained]),
        "version0_share": _mean(rows["version"][trained] == 0),
        "never_trained_share": _mean(~trained),
        "busy": law.n_updates * law.steps * law.c_update / sim_time,
    }
    return result


def _mean(values: Column) -> float:
    return float(np.mean(values)) if len(values) else float("nan")
