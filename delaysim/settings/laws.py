"""From the configuration to the law the clock runs by; the pilot's lengths are asked for only where they are needed."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from numpy.typing import ArrayLike

from delaysim.clock.law import Law, to_ticks
from delaysim.clock.pilot import balanced_look_ahead, settle
from delaysim.settings.config import AUTO, FREE, REPLAY, ClockConf, Config, LognormalConf
from delaysim.settings.identity import needs_pilot
from delaysim.settings.replay import recorded_delays

SAME = {field.name for field in fields(Law)} & {field.name for field in fields(ClockConf)} - {"speed"}
"""Settings that the law has under their own names."""


def law_of(cfg: Config, pilot: Callable[[], ArrayLike]) -> Law:
    """The settled law of a run; `pilot` gives the pilot's lengths [groups, G] in tokens."""
    clock = cfg.clock
    eta = None if clock.eta in (AUTO, FREE) else int(clock.eta)
    l_ref = None if clock.L_ref == AUTO else float(clock.L_ref)
    law = Law(
        n_updates=cfg.updates,
        groups_per_update=cfg.B,
        look_ahead=eta,
        c_gen=clock.C_gen,
        c_update=clock.C_update,
        l_ref=1.0 if l_ref is None else l_ref,
        l_cap=_longest(cfg) if clock.L_cap == AUTO else float(clock.L_cap),
        group_size=cfg.G,
        speed=tuple((float(count), float(rate)) for count, rate in clock.speed),
        steps=cfg.learner.updates_per_batch,
        **{name: getattr(clock, name) for name in SAME},
    )
    if cfg.suite_name == REPLAY:
        return replace(law, look_ahead=int(recorded_delays(cfg).max()))
    if needs_pilot(cfg):
        law = settle(law, pilot(), l_ref, eta)
    elif clock.eta == AUTO:
        law = replace(law, look_ahead=balanced_look_ahead(law))
    return replace(law, look_ahead=None) if clock.eta == FREE else law


def lags(cfg: Config) -> bool:
    """Whether the sampler's weights, or those of its routers, can be older than the learner's."""
    return syncs_late(cfg) or cfg.routing.lag > 0


def syncs_late(cfg: Config) -> bool:
    """Whether the clock brings weights to the sampler later than they are published."""
    clock = cfg.clock
    return clock.sync_every > 1 or (clock.sync_mode == "background" and to_ticks(clock.sync_time) > 0)


def law_from(written: dict[str, Any]) -> Law:
    """A law as its manifest has it."""
    speed = tuple((count, rate) for count, rate in written.get("speed", ()))
    return Law(**written | {"speed": speed, "pilot_sizes": tuple(written.get("pilot_sizes", ()))})


def _longest(cfg: Config) -> float:
    """Longest response there can be [tokens]."""
    if cfg.mode == "trace" and isinstance(cfg.lengths, LognormalConf):
        return float(cfg.lengths.cap)
    return float(cfg.sampler.max_new_tokens)
