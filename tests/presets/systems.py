"""Presets composed once and then changed, and their traces."""

from copy import deepcopy
from functools import cache
from typing import NamedTuple

import numpy as np
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from delaysim.cli.compose import to_config
from delaysim.clock.lengths import KeyedLengths
from delaysim.clock.trace import group_rows, run_alone
from delaysim.run.tracemode import length_law, settled_law
from delaysim.settings.places import conf_dir


@cache
def composed(name):
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        return compose("config", [f"+preset={name}", "mode=trace", "C_gen=4", "updates=400"])


def config(name, **settings):
    """A preset with some knobs changed; other settings are written with __ for a dot."""
    changed = deepcopy(composed(name))
    for key, value in settings.items():
        own = key in changed.preset
        OmegaConf.update(changed, f"preset.{key}" if own else key.replace("__", "."), value)
    return to_config(changed)


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
        return self.delay[self.update >= 200]


def traced(cfg):
    lengths = KeyedLengths(length_law(cfg), cfg.G, cfg.seed)
    ledger = run_alone(law_of(cfg), lengths, cfg.seed).ledger
    rows = group_rows(ledger)
    trained, table = rows["update"] >= 0, lengths.of_ledger(ledger, len(ledger))
    columns = (rows[name][trained].astype(np.int64) for name in ("update", "version"))
    return Trace(*columns, float(table[trained].mean() / table.mean()))
