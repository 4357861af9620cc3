"""Costs that tests ask about, and runs that are joined with them."""

from pathlib import Path

import numpy as np

from delaysim.analysis.outcomes import Outcome
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


def finished(final, seed=0, moments=None, **settings):
    """A run of 60 updates whose accuracy rises in a straight line from .2 to `final`, the same on four problems."""
    settings = {"suite": "fixed_delay", "estimator": "gmc", "D": 0, "lr": 3e-4} | settings
    updates = np.array([0.0, 30.0, 60.0])
    shares = np.repeat(0.2 + (final - 0.2) * updates[:, None] / 60, 4, axis=1)
    name = "-".join(f"{key}{value}" for key, value in {**settings, "seed": seed}.items())
    return Outcome(
        run_id=name, path=Path("nowhere"), settings=settings, seed=seed, state="done", collapsed=False,
        problems=("a", "b", "c", "d"), shares=shares, greedy=shares.mean(axis=1), axes={"updates": updates},
        reached=60, moments=moments or {},
    )  # fmt: skip
