"""How the learning rate moves over a run."""

from math import cos, pi

from delaysim.settings.config import LearnerConf


def peak_share(conf: LearnerConf, update: int, updates: int) -> float:
    """Of `learner.lr`, at one of `updates` updates: linear warm-up, then constant, or falling to `final` at the end."""
    if update < conf.warmup:
        return (update + 1) / conf.warmup
    if conf.schedule == "constant":
        return 1.0
    done = (update - conf.warmup) / max(1, updates - conf.warmup)
    left = 1 - done if conf.schedule == "linear" else 0.5 * (1 + cos(pi * done))
    return conf.final + (1 - conf.final) * left
