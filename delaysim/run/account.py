"""account.json: what became of every group and token of a run, what held it, and the delay that came of it."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delaysim.clock import Law
from delaysim.clock.account import account, optimiser_steps
from delaysim.clock.bias import Bias, Tilt, bias
from delaysim.clock.ledger import Ledger
from delaysim.clock.token_ledger import token_ledger
from delaysim.clock.tokens import token_lags
from delaysim.clock.trace import Column
from delaysim.files import read_json, write_json

FILE = "account.json"


def write_account(
    path: Path,
    ledger: Ledger,
    rows: Mapping[str, Column],
    lengths: Column,
    law: Law,
    rewards: Column | None = None,
    in_flight: bool = False,
    simulated: bool = True,
) -> None:
    """Write the account of a finished run into its directory.

    `rows`: columns of `group_rows`. `lengths` and, where they are known, `rewards`: [groups, G] of the groups that were
    generated. `in_flight`: recount the delays by token. `simulated`: false where no clock
    made the delays.
    """
    found = {**_samples(rows, lengths, law, rewards), **_delays(rows, law)}
    end = ledger.publish[-1]
    books = token_ledger(rows, lengths, np.array(ledger.due, np.int64), end)
    found["tokens"] = {kind: entry._asdict() for kind, entry in books.entries.items()}
    if simulated:
        spent = account(rows, law, ledger.poll, ledger.publish)
        found |= {name: _shares(ticks, end) for name, ticks in (("held", spent.held), ("learner", spent.learner))}
        found["filled"] = dict(spent.filled)
    if in_flight:
        counted = _counted(rows, law)[: len(lengths)]
        late = {name: column[: len(lengths)][counted] for name, column in rows.items()}
        found["token_lags"] = asdict(token_lags(late, lengths[counted], law, ledger.publish))
    write_json(path / FILE, found)


def read_account(path: Path) -> dict[str, Any]:
    """The account of a run, empty where it has none."""
    return dict(read_json(path / FILE)) if (path / FILE).exists() else {}


def _samples(rows: Mapping[str, Column], lengths: Column, law: Law, rewards: Column | None) -> dict[str, Any]:
    values = {"lengths": lengths, "longest": lengths.max(axis=1, keepdims=True)}
    if rewards is not None:
        values |= {"rewards": rewards, "reward_means": rewards.mean(axis=1, keepdims=True)}
    return {name: windows(bias(rows, table, law.look_ahead)) for name, table in values.items()}


def windows(found: Bias) -> dict[str, Any]:
    """A comparison as nested numbers: by population, then by the names of `Tilt`; `policy` says which to read."""
    tilts = {"run": found.run, "decided": found.decided, "steady": found.steady}
    named = {name: _tilt(tilt) for name, tilt in tilts.items() if tilt is not None}
    return {**named, "policy": "decided" if found.steady is None else "steady", "fresh_ratio": found.fresh_ratio}


def _tilt(tilt: Tilt) -> dict[str, Any]:
    return {**asdict(tilt), "ratio": tilt.ratio}


def _delays(rows: Mapping[str, Column], law: Law) -> dict[str, Any]:
    """The delay that came of the look-ahead asked for, in the steady state where there is one."""
    counted = _counted(rows, law)
    delay = rows["delay"][counted]
    steps_mean, steps_max = optimiser_steps(delay, law.steps)
    return {
        "delay": {
            "steady": bool(rows["update"].max() >= law.steady_from),
            "mean": float(delay.mean()),
            "p90": float(np.percentile(delay, 90)),
            "max": int(delay.max()),
            "older": None if law.look_ahead is None else float((delay > law.look_ahead).mean()),
            "steps_mean": steps_mean,
            "steps_max": steps_max,
        }
    }


def _counted(rows: Mapping[str, Column], law: Law) -> NDArray[np.bool_]:
    """Groups trained in the steady state; all that were trained where a run has none."""
    steady = rows["update"] >= law.steady_from
    return steady if steady.any() else rows["update"] >= 0


def _shares(ticks: Mapping[str, int], end: int) -> dict[str, float]:
    return {name: count / end for name, count in ticks.items()}
