"""Lengths for a clock without a model, and the law that goes with them, from the configuration. No torch."""

from delaysim.clock import Law
from delaysim.clock.lengths import Empirical, KeyedLengths, LengthLaw, Lognormal
from delaysim.data import read_lengths
from delaysim.settings.config import Config, LognormalConf
from delaysim.settings.laws import law_of


def length_law(cfg: Config) -> LengthLaw:
    """The law the configuration draws lengths from."""
    if isinstance(cfg.lengths, LognormalConf):
        conf = cfg.lengths
        return Lognormal(conf.mean, conf.sigma, conf.prompt_share, conf.cap)
    return Empirical(read_lengths(cfg.lengths.path, cfg.lengths.column))


def settled_law(cfg: Config, lengths: LengthLaw) -> Law:
    """The clock's law, its pilot drawn from the same length law."""
    return law_of(cfg, lambda: KeyedLengths(lengths, cfg.G, cfg.model.seed, "pilot_lengths").table(cfg.clock.pilot))
