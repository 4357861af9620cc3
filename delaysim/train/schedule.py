"""How the learning rate moves over a run."""

from math import cos, pi

from delaysim.settings.config import LearnerConf


def learning_rate(conf: LearnerConf, update: int, updates: int) -> float:
    """Of one of `updates` updates: linear warm-up, then constant, or falling to `final` of the peak at the end."""
    if update < conf.warmup:
        return conf.lr * (update + 1) / conf.warmup
    done = (update - conf.warmup) / max(1, updates - conf.warmup)
    left = {"constant": 1.0, "linear": 1 - done, "cosine": 0.5 * (1 + cos(pi * done))}[conf.schedule]
    return conf.lr * (conf.final + (1 - conf.final) * left)
