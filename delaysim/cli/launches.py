"""How many groups a planned run launches: what its mini-batches need, or by a trace where policies decide. No torch."""

from dataclasses import dataclass, replace

from delaysim.clock import Stalled
from delaysim.clock.law import TICKS, fixed_delay_sim_time
from delaysim.clock.lengths import KeyedLengths
from delaysim.clock.trace import run_alone
from delaysim.run.drawn import length_law, settled_law
from delaysim.settings.config import AUTO, FREE, REPLAY, Config, LognormalConf
from delaysim.settings.identity import DEFAULTS, POLICIES

TRACED = 1000
"""Updates of a trace at most; a longer run goes on at its pace."""


@dataclass(frozen=True)
class Launches:
    """Of one run."""

    groups: int
    """Generated, trained on or not."""
    dropped: int
    """Of them, dropped by a policy."""
    sim_time: float | None
    """[units]; None = not known without the lengths."""
    trouble: str | None = None
    """Why the learner would wait without end."""


def expected(cfg: Config) -> Launches:
    """Closed forms where they hold, else a trace of at most 1,000 updates with assumed lengths."""
    if decided_by_policies(cfg):
        return _traced(cfg)
    clock, consumed = cfg.clock, cfg.updates * cfg.B
    if cfg.suite_name == REPLAY:
        return Launches(consumed, 0, cfg.updates * cfg.learner.updates_per_batch * clock.C_update)
    eta = clock.eta if clock.eta != AUTO else clock.C_gen * (1 + 0.9 * clock.lam) / clock.C_update
    if clock.lam > 0:
        return Launches(consumed + int(float(eta) * cfg.B), 0, None)
    sim_time = None if clock.workers is not None or clock.eta == AUTO else _fixed(cfg)
    return Launches(consumed, 0, sim_time)


def decided_by_policies(cfg: Config) -> bool:
    """Whether the number of launches follows from more than look-ahead and updates."""
    clock = cfg.clock
    changed = any(getattr(clock, name) != DEFAULTS[name] for name in POLICIES - {"in_flight"})
    return changed or clock.eta == FREE


def mean_length(cfg: Config) -> float:
    """Assumed mean response [tokens]: of `lengths` where it is a law, within the limit."""
    mean = cfg.lengths.mean if isinstance(cfg.lengths, LognormalConf) else cfg.sampler.max_new_tokens / 2
    return float(min(mean, cfg.sampler.max_new_tokens))


def _fixed(cfg: Config) -> float:
    clock = cfg.clock
    return fixed_delay_sim_time(
        cfg.updates, int(clock.eta), clock.C_gen, clock.C_update * cfg.learner.updates_per_batch
    )


def _traced(cfg: Config) -> Launches:
    updates = min(cfg.updates, TRACED)
    short = replace(cfg, updates=updates, lengths=_within_the_limit(cfg))
    drawn = length_law(short)
    law = settled_law(short, drawn)
    lengths = KeyedLengths(drawn, cfg.G, cfg.seed, stat=law.stat, flat=cfg.lengths.flat)
    try:
        clock = run_alone(law, lengths, cfg.seed)
    except Stalled as stalled:
        return Launches(cfg.updates * cfg.B, 0, None, str(stalled))
    more = cfg.updates / updates
    groups = len(clock.ledger) if law.consumable is None else min(len(clock.ledger), law.consumable)
    return Launches(round(groups * more), round(len(clock.ledger.dropped) * more), clock.now / TICKS * more)


def _within_the_limit(cfg: Config) -> object:
    """The law of lengths, scaled to responses that the sampler can give."""
    limit = cfg.sampler.max_new_tokens
    if not isinstance(cfg.lengths, LognormalConf) or cfg.lengths.mean <= limit / 2:
        return cfg.lengths
    return replace(cfg.lengths, mean=limit / 2, cap=limit)
