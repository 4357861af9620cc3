"""Finished runs made up: their scores, seeds and settings are given, and so the answers are known."""

from pathlib import Path

import numpy as np

from delaysim.analysis.outcomes import Outcome

SETTINGS = {"suite": "fixed_delay", "estimator": "gmc", "D": 0, "lr": 3e-4, "G": 8, "B": 8, "N": 60,
            "C_gen": 85.0, "C_update": 1.0, "lam": 0.0}  # fmt: skip


def made(final, seed=0, tokens=100.0, time=1.0, collapsed=False, base=0.2, **settings):
    """A run of three evaluations after the base: problems rise in straight lines from `base` to their final shares."""
    final = np.asarray(final, float)
    settings = SETTINGS | settings
    steps = np.array([0.0, 20.0, 40.0, 60.0])
    shares = base + np.outer(steps / 60, final - base)
    return Outcome(
        run_id="-".join(f"{key}{value}" for key, value in {**settings, "s": seed}.items()),
        path=Path("nowhere"),
        settings=settings,
        seed=seed,
        state="done",
        collapsed=collapsed,
        problems=tuple(f"p{i}" for i in range(len(final))),
        shares=shares,
        greedy=shares.mean(1),
        axes={"updates": steps, "trajectories": 64 * steps, "tokens": tokens * steps, "sim_time": time * steps},
        reached=60,
        moments={},
    )


def score(final, base=0.2):
    """The mean of the last three evaluations of such a run."""
    return base + (np.asarray(final, float) - base) * 2 / 3
