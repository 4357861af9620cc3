"""What a mini-batch and a set of coefficients look like in numbers, the same for every estimator. Imports no torch.

Everything is over responses unless it says token; rho is the trajectory ratio, kappa a coefficient [B, G, T], and what
is kept of a response is its mean kappa. docs/estimators/README.md says how to read each.
"""

from __future__ import annotations

from math import isfinite, log, sqrt
from typing import TYPE_CHECKING

from delaysim.estimators.base import GroupBatch, bounded_exp

if TYPE_CHECKING:
    from torch import Tensor

TOUCHED = 0.01
"""A coefficient that differs from its plain ratio by more than this share counts as touched."""


def ess(log_weights: Tensor, dim: int = -1) -> Tensor:
    """(sum w)^2 / (n sum w^2) along `dim`, in log space: 1 = all count alike, 1/n = one counts alone."""
    share = 2 * log_weights.logsumexp(dim) - (2 * log_weights).logsumexp(dim)
    return share.exp() / log_weights.shape[dim]


def ess_token(log_weights: Tensor, lengths: Tensor) -> float:
    """Verl's effective share: 1 / mean of (w / mean w)^2 over tokens, each with its response's weight."""
    flat, tokens = log_weights.flatten(), lengths.flatten()
    log_tokens = tokens.log()
    first = 2 * (flat + log_tokens).logsumexp(0)
    second = (2 * flat + log_tokens).logsumexp(0)
    return float((first - second).exp() / tokens.sum())


def hill(log_rho: Tensor) -> float | None:
    """Hill's tail index of rho from its sqrt(n) largest values (Hill 1975); below 2 the variance is not finite.

    None with fewer than 9 responses, or where the largest are equal.
    """
    values = log_rho.flatten().sort(descending=True).values
    k = int(sqrt(len(values)))
    spread = float((values[:k] - values[k]).mean()) if k >= 3 else 0.0
    return 1 / spread if spread > 1e-12 and isfinite(spread) else None


def top_share(log_rho: Tensor, dim: int = -1) -> Tensor:
    """Share of the largest rho in the sum along `dim`."""
    return (log_rho.amax(dim) - log_rho.logsumexp(dim)).exp()


def kl_mu_pi_k1(batch: GroupBatch) -> Tensor:
    """[B, G] -log rho: its mean estimates KL(behaviour || current) (Schulman's k1) [nats]."""
    return -batch.log_rho


def kl_mu_pi_k3(batch: GroupBatch) -> Tensor:
    """[B, G] rho - 1 - log rho: the same divergence, never negative (k3) [nats]."""
    return batch.rho - 1 - batch.log_rho


def kl_pi_mu(batch: GroupBatch) -> Tensor:
    """[B, G] rho log rho - rho + 1: its mean estimates KL(current || behaviour), which 2610.01896 bounds by [nats]."""
    return batch.rho * batch.log_rho.clamp(max=log(1e300)) - batch.rho + 1


def plain(batch: GroupBatch, level: str) -> Tensor:
    """[B, G, T or 1] the ratio an estimator of this level would use if it cut nothing; padding aside."""
    if level == "token":
        return batch.ratio
    if level == "sequence":
        return bounded_exp(batch.log_mean_ratio).unsqueeze(-1)
    return batch.mask if level == "none" else batch.rho.unsqueeze(-1)


def off(batch: GroupBatch, kappa: Tensor, level: str) -> Tensor:
    """[B, G, T] tokens whose coefficient is not their plain ratio, by more than TOUCHED of it."""
    ratio = plain(batch, level)
    beyond = (kappa - ratio).abs_().sub_(ratio, alpha=TOUCHED)  # in place: screening spends a third of its time here
    return (beyond > 0) & batch.present


def touched(batch: GroupBatch, kappa: Tensor, level: str) -> Tensor:
    """[B, G] how many tokens of a response these are."""
    return off(batch, kappa, level).sum(-1)


def kept(batch: GroupBatch, kappa: Tensor) -> Tensor:
    """[B, G] mean coefficient over a response's tokens; coefficients are 0 on padding."""
    return kappa.sum(-1) / batch.lengths.clamp(min=1)


def weight(batch: GroupBatch, mean: Tensor) -> Tensor:
    """[B, G] kept / rho: what the estimator multiplies a response's importance ratio by."""
    return mean / batch.rho.clamp(min=1e-300)


def removed(batch: GroupBatch, mean: Tensor) -> Tensor:
    """[B, G] importance mass taken away: max(rho - kept, 0)."""
    return (batch.rho - mean).clamp(min=0)


def second_moment(batch: GroupBatch, mean: Tensor) -> Tensor:
    """[B, G] (kept * advantage)^2: the second moment of the estimate where every grad log pi has norm 1."""
    return (mean * batch.advantages) ** 2


def agreement(batch: GroupBatch, kappa: Tensor) -> Tensor:
    """[B] cosine between this update of a group and that of unclipped importance sampling, token gradients orthonormal.

    NaN where either vanishes, as in groups whose rewards are all equal. Scale-free in rho, so nothing overflows.
    """
    wanted = (batch.log_rho - batch.log_rho.amax(1, keepdim=True)).exp()
    norm = kappa.norm(dim=-1)
    if bool((norm.amax(1) < 1e-100).any()):  # squares have underflowed, or nothing is kept
        kappa = kappa / kappa.abs().amax((1, 2), keepdim=True)
        norm = kappa.norm(dim=-1)
    dot = (batch.advantages**2 * wanted * kappa.sum(-1)).sum(1)
    ours = (batch.advantages * norm).norm(dim=1)
    return dot / (ours * (batch.advantages * wanted * batch.lengths.sqrt()).norm(dim=1))


def correlation(x: Tensor, y: Tensor) -> float | None:
    """Pearson's correlation of two equally shaped tensors; None where either does not vary."""
    a, b = x.flatten().double(), y.flatten().double()
    rounding = 1e-13 * a.norm(), 1e-13 * b.norm()
    a, b = a - a.mean(), b - b.mean()
    size = float(a.norm() * b.norm())
    varies = bool(a.norm() > rounding[0]) and bool(b.norm() > rounding[1])
    return float(a.dot(b)) / size if varies and isfinite(size) else None
