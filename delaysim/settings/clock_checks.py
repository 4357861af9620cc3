"""The rules between the settings of the clock. No torch."""

from delaysim.clock.durations import COUPLINGS, STATS
from delaysim.clock.ready import ORDERS
from delaysim.errors import UserError
from delaysim.settings.bounds import above, at_least, between, one_of
from delaysim.settings.config import AUTO, FREE, MEASURED, ClockConf, Config
from delaysim.settings.identity import DEFAULTS, POLICIES

KEEPS_DELAY = ("L_cap", "coupling", "stat", "sync_time", "reward_lag", "replay_window", "in_flight")
"""Settings that leave the delay of every group as it is where all groups take equally long."""
LIMITS = ("queue_drop", "age_max", "abort_age", "timeout")


def check_clock(cfg: Config) -> None:
    """Raise UserError at the first setting of the clock that cannot be meant."""
    _costs(cfg)
    _choices(cfg)
    _limits(cfg)
    _generation(cfg)
    _flow(cfg)
    _suites(cfg)


def _costs(cfg: Config) -> None:
    clock = cfg.clock
    above("C_update", clock.C_update, 0)
    at_least("C_gen", clock.C_gen, 0)
    at_least("lam", clock.lam, 0)
    at_least("clock.t_min", clock.t_min, 0)
    at_least("clock.pilot", clock.pilot, 2)
    for name in ("noise", "sync_time", "reward_lag"):
        at_least(f"clock.{name}", getattr(clock, name), 0)
    at_least("clock.sync_every", clock.sync_every, 1)
    if clock.lam > 0 and clock.C_gen == 0:
        raise UserError(
            "C_gen=0: with lam > 0 a group's duration is a multiple of C_gen; give C_gen > 0, e.g. C_gen=85"
        )
    if clock.C_gen == 0 and not clock.noise and (_drops(clock) or (clock.eta == FREE and clock.arrivals is None)):
        raise UserError(
            "C_gen=0: groups that take no time are launched and dropped without end at one instant; give C_gen > 0"
        )
    if clock.lam > 0 and clock.t_min == 0:
        raise UserError("clock.t_min=0: a group must take some time; give clock.t_min > 0, e.g. 0.05")
    if clock.eta != FREE:
        _auto_or("clock.eta", clock.eta, whole=True)
    _auto_or("clock.L_ref", clock.L_ref, whole=False)
    _auto_or("clock.L_cap", clock.L_cap, whole=False)


def _drops(clock: ClockConf) -> bool:
    return clock.zero_variance != "kept" or any(getattr(clock, name) is not None for name in LIMITS)


def _choices(cfg: Config) -> None:
    clock = cfg.clock
    one_of("clock.engine", clock.engine, ("simpy", "fast"))
    one_of("clock.coupling", clock.coupling, tuple(COUPLINGS))
    one_of("clock.stat", clock.stat, tuple(STATS))
    one_of("clock.order", clock.order, tuple(ORDERS))
    one_of("clock.zero_variance", clock.zero_variance, ("kept", "replaced"))
    one_of("clock.start", clock.start, ("burst", "stagger", "ramp"))
    one_of("clock.sync_mode", clock.sync_mode, ("blocking", "background"))
    one_of("clock.in_flight", clock.in_flight, ("none", "account"))


def _limits(cfg: Config) -> None:
    clock = cfg.clock
    if clock.queue_drop is not None and clock.queue_drop < 1:
        raise UserError(f"clock.queue_drop={clock.queue_drop:g}: keeps less than one mini-batch; give 1 or more")
    for name in ("age_max", "abort_age"):
        if getattr(clock, name) is not None:
            at_least(f"clock.{name}", getattr(clock, name), 0)
    if clock.timeout is not None:
        above("clock.timeout", clock.timeout, 0)
    if clock.attempts is not None:
        at_least("clock.attempts", clock.attempts, 1)
        if not clock.requeue:
            raise UserError(f"clock.attempts={clock.attempts}: counts launches of a prompt; add clock.requeue=true")
    if clock.requeue and all(getattr(clock, name) is None for name in LIMITS):
        raise UserError(f"clock.requeue=true: nothing is dropped; give one of {', '.join(LIMITS)}, or drop requeue")


def _generation(cfg: Config) -> None:
    clock = cfg.clock
    for name in ("workers", "slots"):
        if getattr(clock, name) is not None:
            at_least(f"clock.{name}", getattr(clock, name), 1)
    if clock.slots is None:
        if clock.speed:
            raise UserError("clock.speed: is shared by generation slots; give clock.slots too, e.g. clock.slots=256")
        return
    if clock.workers is not None:
        raise UserError("clock.slots and clock.workers: slots for responses or for groups; give one of them")
    if clock.lam or clock.noise:
        raise UserError("clock.slots: lengths and throughput give the durations; add lam=0 clock.noise=0")
    if clock.eta == AUTO:
        raise UserError("clock.eta=auto: with clock.slots give a look-ahead in updates, e.g. clock.eta=8, or none")
    if clock.start == "stagger":
        raise UserError("clock.start=stagger: with clock.slots a group has no duration of its own; give burst or ramp")
    if clock.stat != "max" or clock.order == "shortest":
        raise UserError("clock.slots: groups have no size; leave clock.stat, and take another clock.order")
    _speed(clock)


def _speed(clock: ClockConf) -> None:
    counts = [0.0]
    for pair in clock.speed:
        known = isinstance(pair, list) and len(pair) == 2 and all(isinstance(x, int | float) and x > 0 for x in pair)
        if not known or pair[0] <= counts[-1]:
            raise UserError(
                f"clock.speed={pair}: give pairs of responses at once and tokens per sim unit, both above 0 and the "
                "first rising, e.g. clock.speed=[[1,40],[64,1500]]"
            )
        counts.append(pair[0])
    if not clock.speed and clock.C_gen == 0:
        raise UserError("C_gen=0: gives no speed; give C_gen > 0, or clock.speed")


def _flow(cfg: Config) -> None:
    clock = cfg.clock
    if clock.arrivals is not None:
        above("clock.arrivals", clock.arrivals, 0)
    if clock.eta == FREE and clock.workers is clock.slots is clock.arrivals is None:
        raise UserError("clock.eta=none: nothing holds generation back; give clock.workers, .slots or .arrivals")
    if clock.eta == FREE and clock.start == "ramp":
        raise UserError("clock.start=ramp: raises the look-ahead step by step; give clock.eta a number")
    between("clock.replay", clock.replay, 0, 1)
    if clock.replay and not 0 < int(clock.replay * cfg.B + 1e-9) < cfg.B:
        raise UserError(f"clock.replay={clock.replay:g}: of B={cfg.B} groups give a share of at least one and not all")
    at_least("clock.replay_window", clock.replay_window, 1)


def _suites(cfg: Config) -> None:
    """A fixed delay is one by these rules alone, and a measured one has no rules."""
    changed = [name for name in sorted(POLICIES) if getattr(cfg.clock, name) != DEFAULTS[name]]
    if cfg.suite_name == "fixed_delay" and (moved := [name for name in changed if name not in KEEPS_DELAY]):
        raise UserError(
            f"clock.{moved[0]}={getattr(cfg.clock, moved[0])}: the delay would not be {cfg.D} for every group; "
            f"use +suite=simulated_async lam=0 clock.eta={cfg.D}"
        )
    if cfg.suite_name == MEASURED and changed:
        raise UserError(f"clock.{changed[0]}: the suite measured has no clock; use +suite=simulated_async, or drop it")


def _auto_or(key: str, value: float | str, whole: bool) -> None:
    if value == AUTO:
        return
    if isinstance(value, str) or (whole and value != int(value)):
        raise UserError(f"{key}={value}: give auto or a{' whole' if whole else ''} number")
    at_least(key, value, 0) if whole else above(key, value, 0)
