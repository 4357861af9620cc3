"""Random batches on which no library's clamp acts, and the group whose losses are pinned."""

from dataclasses import dataclass
from functools import cache

import torch

from delaysim.estimators.advantage import advantages
from delaysim.estimators.base import GroupBatch

SEEDS = range(25)
TOKEN_BOUND = 9.0
"""Largest log-ratio of a token: verl's GSPO clamps their mean at 10."""
SUM_BOUND = 18.0
"""Largest log-ratio of a response: verl clamps it at +-20, TRL's VESPO at -18.4."""


@dataclass(frozen=True)
class Shape:
    prompts: int
    group: int
    tokens: int
    spread: float
    """Scale of a token's log-ratio [nats]."""
    tail: bool = False
    """Student's t with two degrees of freedom in place of the normal distribution."""


SHAPES = {
    "on_policy": Shape(2, 4, 6, 0.0),
    "near": Shape(3, 4, 8, 0.05),
    "typical": Shape(3, 5, 7, 0.4),
    "wide": Shape(2, 8, 12, 1.0),
    "tailed": Shape(2, 8, 16, 1.0, tail=True),
    "one_token": Shape(4, 6, 1, 1.0),
    "long": Shape(1, 16, 64, 0.1),
    "large_group": Shape(1, 32, 10, 0.3, tail=True),
}


def batches(seed):
    """One batch of each shape."""
    return [random_batch(shape, seed) for shape in SHAPES]


def every_batch():
    return [batch for seed in SEEDS for batch in batches(seed)]


@cache
def random_batch(shape, seed):
    rng = torch.Generator().manual_seed(1000 * list(SHAPES).index(shape) + seed)
    size = SHAPES[shape]
    shape = (size.prompts, size.group, size.tokens)
    mask = _mask(shape, rng)
    delta = _log_ratios(size, shape, mask, rng)
    certainty = -0.5 * torch.rand(shape, generator=rng).clamp(min=1e-9).log()
    logp = -(certainty + (-delta).clamp(min=0)) * mask
    behaviour = -(certainty + delta.clamp(min=0)) * mask
    reference = (logp - torch.rand(shape, generator=rng) + 0.3 * torch.randn(shape, generator=rng)) * mask
    return batch_of(logp, behaviour, mask, _rewards(shape[:2], seed, rng), reference=reference)


def batch_of(logp, behaviour, mask, rewards, advantage=None, reference=None):
    if advantage is None:
        advantage = advantages(rewards, "group_norm", mask.sum(-1))
    delays = torch.full(logp.shape[:1], 3)
    return GroupBatch(logp, behaviour, mask, rewards, advantage, delays, torch.zeros_like(delays), reference=reference)


def _mask(shape, rng):
    lengths = torch.randint(1, shape[2] + 1, (*shape[:2], 1), generator=rng)
    lengths[0, 0] = shape[2]
    return (torch.arange(shape[2]) < lengths).double()


def _log_ratios(size, shape, mask, rng):
    delta = size.spread * torch.randn(shape, generator=rng)
    if size.tail:
        delta = delta / torch.randn((*shape, 2), generator=rng).pow(2).mean(-1).sqrt()
    delta = delta.clamp(-TOKEN_BOUND, TOKEN_BOUND) * mask
    return delta * (SUM_BOUND / delta.sum(-1, keepdim=True).abs().clamp(min=1e-9)).clamp(max=1)


def _rewards(shape, seed, rng):
    scores = torch.rand(shape, generator=rng)
    return scores.round() if seed % 2 == 0 else scores


LENGTHS = (3, 2, 3, 1)
BEHAVIOUR = ((-1, -0.5, -2), (-0.7, -1.2), (-1.5, -0.8, -0.9), (-0.3,))
LOG_RATIO = ((0.1, -0.05, 0.3), (-0.4, 0.2), (0.6, 0.5, 0.4), (-1,))


def pinned():
    """The group of the pinned losses, with rewards and advantages of 1 and -1."""
    behaviour, delta = padded(BEHAVIOUR), padded(LOG_RATIO)
    signs = torch.tensor([[1.0, -1.0, -1.0, 1.0]])
    return batch_of(behaviour + delta, behaviour, padded([[1] * length for length in LENGTHS]), signs, signs)


def small(log_ratio, advantage, logp=-1.0):
    """One group of given log-ratios, rows of equal length."""
    delta = torch.tensor([log_ratio], dtype=torch.float64)
    current = torch.full_like(delta, logp)
    signs = torch.tensor([advantage], dtype=torch.float64)
    return batch_of(current, current - delta, torch.ones_like(delta), signs, signs)


def padded(rows):
    width = max(map(len, rows))
    return torch.tensor([[[*row, *[0.0] * (width - len(row))] for row in rows]], dtype=torch.float64)
