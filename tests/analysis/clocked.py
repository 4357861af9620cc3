"""Clocks driven with given lengths, one response to a group: as a record in memory, and as a trace directory."""

from dataclasses import asdict, replace
from functools import cache
from unittest.mock import patch

import numpy as np
from clock.helpers import drive
from hypothesis import assume
from hypothesis import strategies as st
from settings import make_config

from delaysim.analysis.timeline.record import COUNTS, UNITS, Record
from delaysim.clock import TICKS, Stalled, loop
from delaysim.clock.ledger import FATES
from delaysim.clock.trace import group_rows, moments
from delaysim.files import write_json
from delaysim.run.records import SCHEMA
from delaysim.run.tracefile import write_trace
from delaysim.settings.configfile import save_config

config = cache(make_config)
POLICIES = st.fixed_dictionaries(
    {},
    optional={
        "order": st.sampled_from(["submit", "lifo", "random", "freshest"]),
        "queue_drop": st.sampled_from([1.0, 2.0]),
        "age_max": st.integers(0, 3),
        "abort_age": st.integers(0, 3),
        "timeout": st.sampled_from([1.0, 4.0, 9.5]),
        "requeue": st.booleans(),
        "noise": st.just(0.5),
        "arrivals": st.sampled_from([0.5, 3.0]),
        "start": st.sampled_from(["stagger", "ramp"]),
        "sync_time": st.sampled_from([0.25, 1.0, 2.5]),
        "sync_mode": st.sampled_from(["blocking", "background"]),
        "sync_every": st.integers(1, 3),
        "steps": st.integers(1, 2),
        "reward_lag": st.sampled_from([0.5, 3.0]),
    },
)
"""What a law can have beside the rules of a plain run."""


def clocked(law, longest, suite="simulated_async"):
    """The record of a driven clock, from its ledger's ticks, and its rows; none of a law under which it stalls."""
    try:
        with patch.object(loop, "STARVED", 200):
            clock = drive(law, longest)[0]
    except Stalled:
        assume(False)
    ledger, rows = clock.ledger, group_rows(clock.ledger)
    ticks = ledger.columns()
    groups = {name: rows[name].astype(np.int64) for name in COUNTS if name in rows}
    groups |= {name: ticks[name] for name in UNITS}
    lengths = np.full((len(ledger), 1), -1)
    lengths[: law.consumable] = np.resize(longest, (len(ledger), 1))[: law.consumable]
    cfg = replace(config(suite=suite), updates=law.n_updates, B=law.groups_per_update, G=1)
    poll, publish = np.array(ledger.poll), np.array(ledger.publish)
    return Record("made", cfg, law, groups, np.array(FATES)[rows["fate"]], lengths, poll, publish), rows


def write_clocked(path, record, rows):
    """The same as a directory."""
    path.mkdir(parents=True, exist_ok=True)
    write_trace(path / "trace.parquet", rows, record.generated)
    save_config(record.cfg, path / "config.yaml")
    write_json(path / "manifest.json", {"schema": SCHEMA, "law": asdict(record.law)})


def busy(record, rows):
    """The learner's share of time as moments.json has it."""
    return moments(rows, record.law, record.stop / TICKS)["busy"]
