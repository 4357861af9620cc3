"""The clock of a suite."""

from delaysim.clock import Clock, Law
from delaysim.clock.replay import Replay
from delaysim.settings.config import REPLAY, Config
from delaysim.settings.replay import recorded_delays


def clock_of(cfg: Config, law: Law) -> Clock | Replay:
    """The clock that a run of this configuration is driven by. Raises UserError where recorded delays are missing."""
    return replay_of(cfg, law) if cfg.suite_name == REPLAY else Clock(law, cfg.seed)


def replay_of(cfg: Config, law: Law) -> Replay:
    """The clock of recorded delays. Raises UserError where they are missing."""
    return Replay(law, recorded_delays(cfg), cfg.delays.per == "group")
