"""The pilot: groups sampled from the base policy to learn its lengths, never trained on, cached beside the base."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from delaysim.files import digest, read_json, write_json
from delaysim.policy.base import cached
from delaysim.policy.model import Policy
from delaysim.run.experiment import Watcher
from delaysim.run.rollouts import Rollouts, Stream
from delaysim.run.sampling import decoding_of
from delaysim.run.stopwatch import Stopwatch
from delaysim.settings.config import Config
from delaysim.settings.identity import identity
from delaysim.tasks import Task

FIRST_GROUP = 1 << 40
"""Pilot problems are drawn far beyond any training group."""


def pilot_lengths(cfg: Config, policy: Policy, task: Task, watcher: Watcher) -> NDArray[np.int64]:
    """Lengths [clock.pilot, G] in tokens, keyed by the base policy and model.seed, not by the run's seed."""
    read = identity(cfg)
    key = {name: read[name] for name in ("model", "task", "sampler", "G")}
    key |= {"pilot": cfg.clock.pilot, "torch": torch.__version__}
    place = cached("pilot", digest(key), lambda folder: _measure(cfg, policy, task, folder, watcher))
    return np.array(read_json(place / "lengths.json"), np.int64)


def _measure(cfg: Config, policy: Policy, task: Task, folder: Path, watcher: Watcher) -> None:
    stream = Stream(cfg.model.seed, "pilot", FIRST_GROUP)
    decoding = replace(decoding_of(cfg, policy), routes=False)
    rollouts = Rollouts(policy, task, decoding, stream, cfg.G, cfg.sampler.chunk, Stopwatch())
    lengths: list[list[int]] = []
    for chunk in rollouts.chunks(range(cfg.clock.pilot)):
        lengths += [group.lengths for group in rollouts.generate(chunk, 0)]
        watcher.working("pilot: measuring response lengths", len(lengths), cfg.clock.pilot)
    write_json(folder / "lengths.json", lengths)
