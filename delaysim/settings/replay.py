"""The suite `replay`: delays from a recorded column, and the rules between its settings. No torch."""

import json
import re
import shlex
from dataclasses import asdict
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from delaysim.data import read_delays
from delaysim.errors import UserError
from delaysim.settings.bounds import one_of
from delaysim.settings.config import REPLAY, Config, DelaysConf
from delaysim.settings.identity import DEFAULTS

EXAMPLE = "+suite=replay delays.path=delays.csv delays.column=delay"
PER = ("update", "group")


def recorded_delays(cfg: Config) -> NDArray[np.int64]:
    """The recorded delays [updates], in order. Raises UserError where the file has none."""
    path = Path(str(cfg.delays.path)).expanduser()
    try:
        changed = path.stat().st_mtime_ns
    except OSError as error:
        raise UserError(f"delays.path={path}: {error.strerror}") from None
    return _read(path, changed, cfg.delays.column, cfg.delays.where)


@cache
def _read(path: Path, _changed: int, column: str, where: str | None) -> NDArray[np.int64]:
    return read_delays(path, column, where)


def check_replay(cfg: Config) -> None:
    """Raise UserError at the first setting of recorded delays that cannot be meant."""
    if cfg.suite_name != REPLAY:
        if cfg.delays != DelaysConf():
            raise UserError(
                f"delays: the suite {cfg.suite_name} has delays of its own; use {EXAMPLE}, or drop delays.*"
            )
        return
    if cfg.delays.path is None:
        raise UserError(f"delays.path=null: the suite replay needs a file of recorded delays, e.g. {EXAMPLE}")
    _check_clock(cfg)
    one_of("delays.per", cfg.delays.per, PER)
    if cfg.delays.where is not None and not cfg.delays.where.partition("=")[1]:
        raise UserError(f"delays.where={cfg.delays.where}: give COLUMN=VALUE, e.g. 'delays.where=\"run=a\"'")
    recorded_delays(cfg)


def _check_clock(cfg: Config) -> None:
    """No other rule of the clock has a part in recorded delays."""
    given = {name: getattr(cfg.clock, name) for name in DEFAULTS} | {"lam": cfg.lam or cfg.clock.lam}
    plain = DEFAULTS | {"C_gen": cfg.clock.C_gen, "C_update": cfg.clock.C_update, "lam": 0.0, "eta": 0}
    changed = [name for name in sorted(given) if given[name] != plain[name]]
    if changed:
        raise UserError(
            f"clock.{changed[0]}={given[changed[0]]}: the suite replay takes every delay from delays.path; drop it"
        )


def replay_command(cfg: Config) -> str:
    """The words of a command line that ask for these delays."""
    plain = asdict(DelaysConf())
    given = {f"delays.{key}": value for key, value in asdict(cfg.delays).items() if value != plain[key]}
    return shlex.join(["+suite=replay", *(f"{key}={_quoted(str(value))}" for key, value in given.items())])


def _quoted(value: str) -> str:
    """A value as Hydra reads it."""
    return value if re.fullmatch(r"[\w./-]+", value) else json.dumps(value)


def replay_text(cfg: Config) -> str:
    """What is replayed, in words; and whether it is shorter than the run."""
    count, needed = len(recorded_delays(cfg)), cfg.updates * (1 if cfg.delays.per == "update" else cfg.B)
    over = f"; {needed:,} are needed: they start over" if needed > count else ""
    return f"{count:,} recorded, one per {cfg.delays.per}{over}"
