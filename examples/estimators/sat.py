"""SAT (2607.18722): PPO's clip, contracted for the tokens with the largest log-ratios.

A reading of third-party notes: the paper's text was not available, and there is no public code. Known: q is the 0.9
quantile of d = |log r| over all tokens; beyond it the endpoint on the token's side, 1 + eps or 1 - eps, moves towards 1
by a factor c(d). Open, hence settings: the kernel c (one note has Hill's with exponent 2, another a Gaussian), and
whether it is measured from 0 or from q, where the contraction would set in without a jump.
"""

from dataclasses import dataclass

from delaysim.estimators.base import unclipped

SCOPE = "batch"
NEEDS = ("advantages",)
CHOICES = {"kernel": ("hill", "gaussian"), "start": ("zero", "quantile")}


@dataclass
class Params:
    """Known: eps 0.2 on both sides, quantile 0.9. The other settings are choices of this reading."""

    eps: float = 0.2
    """Clip range where nothing is contracted."""
    quantile: float = 0.9
    """Share of the mini-batch's tokens left alone."""
    kernel: str = "hill"
    """hill: c = 1 / (1 + x^2); gaussian: c = exp(-x^2 / 2)."""
    start: str = "zero"
    """zero: x = d / q; quantile: x = (d - q) / q."""


def coefficients(batch, params):
    """Kappa [B, G, T] = r where the contracted clip does not bind, else 0."""
    low, high = interval(batch, params)
    return batch.ratio * unclipped(batch.ratio, batch.advantage, low, high) * batch.mask


def interval(batch, params):
    """Lower and upper end [B, G, T] of each token's clip."""
    d = batch.log_ratio.abs()
    q = d[batch.mask > 0].quantile(params.quantile)
    factor = contraction(d, q.clamp(min=1e-12), params).where(d > q, 1)
    eps = params.eps
    return 1 - eps * factor.where(batch.log_ratio < 0, 1), 1 + eps * factor.where(batch.log_ratio > 0, 1)


def contraction(d, q, params):
    """c(d), at most 1."""
    x = {"zero": d, "quantile": d - q}[params.start] / q
    return {"hill": 1 / (1 + x**2), "gaussian": (-(x**2) / 2).exp()}[params.kernel]
