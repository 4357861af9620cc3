"""CARM (2610.02039): GRPO on responses whose mean absolute log-ratio is small.

A reading of third-party notes: the paper's text was not available, and there is no public code. Known: a response is
kept where (1/T) sum |log r| <= log tau, a detached mask on the ordinary clipped token loss. Open, hence settings:
tau (one replica has 1.2) and the clip range of the loss beneath. A dropped response stays in the denominator.
Signs do not cancel here, as they do in the mean log-ratio of the built-in opsm.
"""

from dataclasses import dataclass
from math import log1p

from delaysim.estimators.base import unclipped

SCOPE = "response"
NEEDS = ("advantages",)


@dataclass
class Params:
    """`eps` sets tau = 1 + eps."""

    eps: float = 0.2
    """A response is kept while its mean |log r| is at most log(1 + eps) [nats]."""
    clip: float = 0.2
    """GRPO's clip range."""


def coefficients(batch, params):
    """Kappa [B, G, T] = GRPO's, 0 on dropped responses."""
    kept = drift(batch) <= log1p(params.eps)
    free = unclipped(batch.ratio, batch.advantage, 1 - params.clip, 1 + params.clip)
    return batch.ratio * free * batch.mask * kept.unsqueeze(-1)


def drift(batch):
    """[B, G] mean |log r| over a response's tokens [nats]."""
    return batch.log_ratio.abs().sum(-1) / batch.lengths.clamp(min=1)
