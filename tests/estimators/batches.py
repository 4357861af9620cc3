"""Batches for estimator tests: the pinned group of the literature's formulas, random ones, extreme ones."""

import torch

from delaysim.estimators import make
from delaysim.estimators.base import GroupBatch, aggregation_weights, weighted

LENGTHS = [3, 2, 3, 1]
BEHAVIOUR = [[-1, -0.5, -2], [-0.7, -1.2], [-1.5, -0.8, -0.9], [-0.3]]
LOG_RATIO = [[0.1, -0.05, 0.3], [-0.4, 0.2], [0.6, 0.5, 0.4], [-1]]
ADVANTAGE = [1.0, -1.0, -1.0, 1.0]


def padded(rows, width=3):
    """Rows of different lengths as [1, rows, width]."""
    return torch.tensor([[[*row, *[0.0] * (width - len(row))] for row in rows]], dtype=torch.float64)


def batch_of(logp, behaviour, mask, advantages, delays=None, **more):
    """A batch whose rewards are 1 where the advantage is positive; delay 3 unless given."""
    delays = torch.full((logp.shape[0],), 3) if delays is None else torch.as_tensor(delays)
    rewards = more.pop("rewards", (advantages > 0).to(logp.dtype))
    return GroupBatch(logp, behaviour, mask, rewards, advantages, delays, 10 - delays, **more)


def pinned(**more):
    """One group of four responses with unit advantages."""
    behaviour = padded(BEHAVIOUR)
    mask = padded([[1.0] * length for length in LENGTHS])
    return batch_of(
        behaviour + padded(LOG_RATIO), behaviour, mask, torch.tensor([ADVANTAGE], dtype=torch.float64), **more
    )


def pinned_as_groups(delays):
    """The pinned responses as four groups of one, each with its own delay."""
    batch = pinned()
    split = {name: getattr(batch, name).transpose(0, 1) for name in ("logp", "behaviour", "mask", "advantages")}
    return batch_of(**split, delays=delays)


def random_batch(seed, b=3, g=5, t=7, spread=0.6):
    """Groups of random lengths, log-ratios normal with `spread`, current log-probabilities below 0."""
    rng = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, t + 1, (b, g, 1), generator=rng)
    mask = (torch.arange(t) < lengths).double()
    delta = torch.randn(b, g, t, generator=rng, dtype=torch.float64) * spread * mask
    logp = (-torch.rand(b, g, t, generator=rng, dtype=torch.float64) * 3 + delta.clamp(max=0)) * mask
    advantages = torch.randn(b, g, generator=rng, dtype=torch.float64)
    return batch_of(logp, logp - delta, mask, advantages, delays=torch.randint(0, 9, (b,), generator=rng))


def one_token(ratio, advantage, delay=3, logp=-6.0, **more):
    """A response of one token with this ratio."""
    logp = torch.tensor([[[logp]]], dtype=torch.float64)
    behaviour = logp - torch.tensor(ratio, dtype=torch.float64).log()
    return pinned_like(logp, behaviour, advantage, delay, **more)


def pinned_like(logp, behaviour, advantage, delay, **more):
    """A batch without padding and with one advantage for all."""
    a = torch.full(logp.shape[:2], advantage, dtype=torch.float64)
    return batch_of(logp, behaviour, torch.ones_like(logp), a, delays=[delay] * logp.shape[0], **more)


def kappa(name, batch, **settings):
    """Coefficients of a built-in estimator."""
    return make(name, **settings).coefficients(batch)


def loss_weights(batch, kappa, aggregation, longest=1):
    """[B, G, T] the factor of each token's log-probability in the objective."""
    return weighted(batch, kappa, aggregation_weights(batch.mask, aggregation, longest))
