"""Presets composed once and then changed, and their traces."""

from dataclasses import fields
from typing import NamedTuple

import numpy as np

from delaysim.cli.export import preset_config
from delaysim.clock.lengths import KeyedLengths
from delaysim.clock.trace import group_rows, run_alone
from delaysim.presets import discover
from delaysim.run.drawn import length_law, settled_law


def config(name, **settings):
    """A preset with some knobs changed; other settings are written with __ for a dot."""
    own = settings.keys() & {field.name for field in fields(discover()[name].Knobs)}
    others = {key.replace("__", "."): value for key, value in settings.items() if key not in own}
    return preset_config(name, {"C_gen": 4, "updates": 300, **others}, {key: settings[key] for key in own})


def law_of(cfg):
    return settled_law(cfg, length_law(cfg))


class Trace(NamedTuple):
    """Of the trained groups, in the order of their ids."""

    update: np.ndarray
    version: np.ndarray
    length_ratio: float

    @property
    def delay(self):
        return self.update - self.version

    @property
    def steady(self):
        return self.delay[self.update >= 100]


def traced(cfg):
    lengths = KeyedLengths(length_law(cfg), cfg.G, cfg.seed)
    ledger = run_alone(law_of(cfg), lengths, cfg.seed).ledger
    rows = group_rows(ledger)
    trained, table = rows["update"] >= 0, lengths.of_ledger(ledger, len(ledger))
    columns = (rows[name][trained].astype(np.int64) for name in ("update", "version"))
    return Trace(*columns, float(table[trained].mean() / table.mean()))
