"""The contract of an estimator, as checks that can be run on any file: `delaysim check-estimator`, and our own tests.

Each check gets the estimator and raises `Broken` with what it saw; docs/estimators/README.md says why each matters.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from math import exp

import torch

from delaysim.estimators.base import INPUTS, LOG_KAPPA_BOUND, GroupBatch
from delaysim.estimators.interface import Estimator

SEEDS = range(8)


class Broken(Exception):
    """A check does not hold; the message says what was seen."""


@dataclass(frozen=True)
class Finding:
    """How one check went."""

    name: str
    says: str
    """What the check demands, in a sentence."""
    broken: str | None = None
    """What was seen instead; None = it holds."""


def check(estimator: Estimator) -> Iterator[Finding]:
    """Every check in turn. An error inside the estimator's own code breaks the check it happens in."""
    for function in CHECKS:
        says = (function.__doc__ or "").strip().removesuffix(".")
        try:
            function(estimator)
        except Broken as broken:
            yield Finding(function.__name__, says, str(broken))
        except Exception as error:  # the boundary to a user's code
            yield Finding(function.__name__, says, f"{type(error).__name__}: {error}")
        else:
            yield Finding(function.__name__, says)


def random_batch(seed: int, b: int = 3, g: int = 4, t: int = 6, spread: float = 0.6) -> GroupBatch:
    """A batch of random lengths, ratios, rewards and delays."""
    rng = torch.Generator().manual_seed(seed)

    def noise(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=rng, dtype=torch.float64)

    lengths = torch.randint(1, t + 1, (b, g, 1), generator=rng)
    mask = (torch.arange(t) < lengths).double()
    behaviour = -3 * noise(b, g, t).abs() * mask
    delta = spread * noise(b, g, t) * mask
    delays = torch.randint(1, 40, (b,), generator=rng)
    return GroupBatch(
        logp=behaviour + delta,
        behaviour=behaviour,
        mask=mask,
        rewards=torch.randint(0, 2, (b, g), generator=rng).double(),
        advantages=noise(b, g),
        delays=delays,
        versions=50 - delays,
        proximal=behaviour + 0.5 * delta,
    )


def shape(estimator: Estimator) -> None:
    """Coefficients are finite numbers [B, G, T], without gradients."""
    batch = random_batch(0)
    kappa = estimator.coefficients(batch)
    if not isinstance(kappa, torch.Tensor) or kappa.shape != batch.mask.shape:
        raise Broken(f"got {getattr(kappa, 'shape', type(kappa).__name__)}, expected {tuple(batch.mask.shape)}")
    if kappa.dtype != batch.mask.dtype:
        raise Broken(f"got {kappa.dtype}, expected {batch.mask.dtype} like the mask")
    if kappa.requires_grad:
        raise Broken("it carries gradients: detach it")
    if not kappa.isfinite().all():
        raise Broken("some are not finite")


def purity(estimator: Estimator) -> None:
    """The same batch gives the same coefficients, and is left as it was."""
    batch, before = random_batch(1), random_batch(1)
    first, second = estimator.coefficients(batch), estimator.coefficients(batch)
    _same(first, second, "called twice", exact=True)
    for field in fields(GroupBatch):
        value = getattr(before, field.name)
        if value is not None and not torch.equal(getattr(batch, field.name), value):
            raise Broken(f"it changed batch.{field.name}")


def delay_0(estimator: Estimator) -> None:
    """Where current and behaviour weights agree every coefficient is exactly 1, unless declared otherwise."""
    if estimator.at_delay_0 is not None:
        return
    for seed in SEEDS:
        batch = random_batch(seed, spread=0.0)
        fresh = replace(batch, logp=batch.behaviour, proximal=batch.behaviour, delays=0 * batch.delays)
        kappa = estimator.coefficients(fresh)
        if not torch.equal(kappa.double(), fresh.mask):
            worst = float((kappa - fresh.mask).abs().max())
            raise Broken(f"off by {worst:.3g}; if that is meant, declare AT_DELAY_0 = 'why'")


def padding(estimator: Estimator) -> None:
    """What stands on padding is never read, and coefficients there are 0."""
    for seed in SEEDS:
        batch = random_batch(seed)
        noise = 100 * (1 - batch.mask)
        dirty = replace(batch, logp=batch.logp + noise, behaviour=batch.behaviour - noise)
        kappa = estimator.coefficients(batch)
        if kappa[batch.mask == 0].any():
            raise Broken("coefficients on padding are not 0: multiply by batch.mask")
        _same(kappa, estimator.coefficients(dirty), "with other numbers on padding")
        wide = replace(batch, **{name: _widened(getattr(batch, name)) for name in TOKENS})
        _same(kappa, estimator.coefficients(wide)[:, :, : kappa.shape[2]], "with more padding")


def order(estimator: Estimator) -> None:
    """Responses and groups may stand in any order."""
    for seed in SEEDS:
        batch = random_batch(seed)
        kappa = estimator.coefficients(batch)
        responses, groups = torch.tensor([2, 0, 3, 1]), torch.tensor([1, 2, 0])
        mixed = replace(batch, **{name: getattr(batch, name)[:, responses] for name in (*TOKENS, *RESPONSES)})
        _same(kappa[:, responses], estimator.coefficients(mixed), "with responses in another order")
        _same(kappa[groups], estimator.coefficients(_groups(batch, groups)), "with groups in another order")


def scope(estimator: Estimator) -> None:
    """A response's coefficients depend on nothing outside the declared SCOPE."""
    for seed in SEEDS:
        batch, other = random_batch(seed), random_batch(seed + 100)
        kappa = estimator.coefficients(batch)
        if estimator.scope in ("response", "group"):
            alone = estimator.coefficients(_groups(batch, torch.tensor([1])))
            _same(kappa[1:2], alone, f"with a group by itself, and SCOPE is {estimator.scope!r}")
        if estimator.scope == "response":
            names = (*TOKENS, *RESPONSES)
            parts = {n: torch.cat([getattr(batch, n)[:, :1], getattr(other, n)[:, 1:]], dim=1) for n in names}
            mixed = estimator.coefficients(replace(batch, **parts))
            _same(kappa[:, :1], mixed[:, :1], "with other responses beside it, and SCOPE is 'response'")


def needs(estimator: Estimator) -> None:
    """Inputs that NEEDS does not name make no difference."""
    for seed in SEEDS:
        batch = random_batch(seed)
        kappa = estimator.coefficients(batch)
        for name in INPUTS:
            if name not in estimator.needs:
                _same(kappa, estimator.coefficients(_without(batch, name)), f"with other {name}: add it to NEEDS")


def extremes(estimator: Estimator) -> None:
    """Log-ratios up to +-1e4 and lengths up to 32,000 give finite coefficients, none beyond the bound e^30."""
    for tokens in (1, 32_000):
        for size in (700.0, 1e4):
            kappa = estimator.coefficients(_extreme(tokens, size))
            if not kappa.isfinite().all():
                raise Broken(f"not finite at token log-ratios of +-{size:g} over {tokens} tokens: stay in log space")
            if float(kappa.abs().max()) > exp(LOG_KAPPA_BOUND) * (1 + 1e-9):
                raise Broken(f"{float(kappa.abs().max()):.3g} at +-{size:g}: use base.bounded_exp")


def weighted_class(estimator: Estimator) -> None:
    """Where it declares mass_bound, no weight exceeds 1 and no group mean the bound, which is nearly reached."""
    bound = estimator.mass_bound
    if bound is None:
        return
    weight, mass = class_witness(estimator)
    if weight > 1 + 1e-9:
        raise Broken(f"a weight kappa/rho of {weight:.6g}")
    if mass > bound * (1 + 1e-9):
        raise Broken(f"a group mean of {mass:.6g}, declared {bound:.6g}")
    if mass < bound * 0.99:
        raise Broken(f"no group mean above {mass:.6g} found, declared {bound:.6g}: the bound is loose")


def class_witness(estimator: Estimator) -> tuple[float, float]:
    """Largest weight kappa/rho and largest group mean of kappa over many groups of one-token responses.

    With one token the token, sequence and trajectory ratios are the same, so that every method can be held against the
    class of 2610.01896, Definition 1. Groups of equal ratios on a fine grid, and random ones; advantages of both signs.
    """
    grid = torch.linspace(-4, 5, 20_001, dtype=torch.float64)[:, None].expand(-1, 4)
    rng = torch.Generator().manual_seed(0)
    log_rho = torch.cat([grid, 2 * torch.randn(4000, 4, generator=rng, dtype=torch.float64)])
    weight = mass = 0.0
    for sign in (1.0, -1.0):
        batch = _one_token(log_rho, sign)
        for part in _split(batch, estimator.scope):
            kappa = estimator.coefficients(part).squeeze(-1)
            weight = max(weight, float((kappa / part.rho).max()))
            mass = max(mass, float(kappa.mean(1).max()))
    return weight, mass


TOKENS = ("logp", "behaviour", "mask", "proximal")
RESPONSES = ("rewards", "advantages")
CHECKS: tuple[Callable[[Estimator], None], ...] = (
    shape, purity, delay_0, padding, order, scope, needs, extremes, weighted_class,
)  # fmt: skip


def _same(one: torch.Tensor, other: torch.Tensor, when: str, exact: bool = False) -> None:
    equal = torch.equal(one, other) if exact else torch.allclose(one, other, rtol=1e-9, atol=1e-12)
    if not equal:
        raise Broken(f"coefficients change by up to {float((one - other).abs().max()):.3g} {when}")


def _widened(values: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.pad(values, (0, 3))


def _groups(batch: GroupBatch, which: torch.Tensor) -> GroupBatch:
    names = (*TOKENS, *RESPONSES, "delays", "versions")
    return replace(batch, **{name: getattr(batch, name)[which] for name in names})


def _without(batch: GroupBatch, name: str) -> GroupBatch:
    """The batch with one input replaced by something else of its kind."""
    if name == "logp":  # other probabilities, the same ratios
        return replace(batch, logp=batch.logp - 1, behaviour=batch.behaviour - 1, proximal=batch.anchor - 1)
    if name == "proximal":
        return replace(batch, proximal=batch.behaviour)
    value = getattr(batch, name)
    return replace(batch, **{name: -value if value.is_floating_point() else value + 7})


def _extreme(tokens: int, size: float) -> GroupBatch:
    signs = torch.tensor([[1.0, -1.0, 1.0, 0.0], [-1.0, -1.0, -1.0, -1.0], [1.0, 1.0, 1.0, 1.0]]).double()
    rng = torch.Generator().manual_seed(0)
    delta = signs[:, :, None] * size * torch.rand(3, 4, tokens, generator=rng, dtype=torch.float64)
    logp = delta.clamp(max=0) - 1.0
    advantages = torch.tensor([[1.0, 1.0, -1.0, -1.0]]).double().expand(3, 4)
    delays = torch.tensor([1, 8, 128])
    mask = torch.ones_like(delta)
    return GroupBatch(logp, logp - delta, mask, (advantages > 0).double(), advantages, delays, 128 - delays)


def _one_token(log_rho: torch.Tensor, sign: float) -> GroupBatch:
    logp = torch.full_like(log_rho, -30.0)[:, :, None]  # rare tokens: no probability moves far
    advantages = torch.full_like(log_rho, sign)
    delays, mask, behaviour = (
        torch.ones(len(log_rho), dtype=torch.long),
        torch.ones_like(logp),
        logp - log_rho[:, :, None],
    )
    return GroupBatch(logp, behaviour, mask, 0 * advantages, advantages, delays, delays, proximal=behaviour)


def _split(batch: GroupBatch, scope: str) -> Iterator[GroupBatch]:
    """Everything at once where groups do not see each other, else every twentieth group by itself."""
    count = len(batch.delays)
    size, step = (1, 20) if scope == "batch" else (count, count)
    names = (*TOKENS, *RESPONSES, "delays", "versions")
    for start in range(0, count, step):
        yield replace(batch, **{name: getattr(batch, name)[start : start + size] for name in names})
