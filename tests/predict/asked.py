"""Costs that tests ask about."""

from delaysim.clock.lengths import Lognormal
from delaysim.predict.costs import Costs, Rollout, Trainer, Work

SPEED = ((1.0, 60.0), (16.0, 800.0), (64.0, 2200.0), (256.0, 3600.0))


def constant(length):
    """Every response has this length."""
    return Lognormal(float(length), 0.0, 0.0, 10**9)


def costs(groups=8, group_size=4, lengths=None, speed=SPEED, slots=256, trainer=((1.0, 20.0),), sync=0.0, scaling=1.0):
    """Some costs; every argument has a default."""
    lengths = Lognormal(600.0, 0.7, 0.5, 3072) if lengths is None else lengths
    return Costs(Work(groups, group_size, lengths), Rollout(speed, slots), Trainer(trainer, scaling), sync)
