"""One of our estimators beside a library's loss: the comparison, and what the batches must have exercised."""

from dataclasses import dataclass, field

from estimators.batches import loss_weights
from oracles.batches import every_batch
from oracles.libraries import longest

from delaysim.estimators import make
from delaysim.estimators.base import aggregation_weights, bounded_exp


@dataclass(frozen=True)
class Case:
    """A method and its aggregation here, and the call that gives the library's."""

    method: str
    aggregation: str
    settings: dict = field(default_factory=dict)
    theirs: dict = field(default_factory=dict)
    label: str = ""

    def __str__(self):
        return "-".join(filter(None, (self.method, self.aggregation, self.label)))

    def kappa(self, batch):
        return make(self.method, **self.settings).coefficients(batch)

    def weights(self, batch):
        """Minus the gradient of our loss."""
        return loss_weights(batch, self.kappa(batch), self.aggregation, longest(batch))


def unit(batch, aggregation):
    return aggregation_weights(batch.mask, aggregation, longest(batch))


def worst(batch, weights, gradient, aggregation):
    """Largest difference of the gradients, relative to the larger of theirs and that of kappa = 1 at advantage 1."""
    scale = gradient.abs() + unit(batch, aggregation)
    error = (weights + gradient).abs()
    assert not error[batch.mask == 0].any(), "padding has a gradient"
    return float((error / scale)[batch.mask > 0].max())


def assert_agrees(batch, case, gradient, tolerance):
    found = worst(batch, case.weights(batch), gradient, case.aggregation)
    assert found <= tolerance, f"{case}: relative difference {found:.3g} on a batch of shape {tuple(batch.mask.shape)}"


def shares(case):
    """Shares of tokens whose coefficient is below half, and above nine tenths, of the plain ratio."""
    low, high, tokens = 0, 0, 0
    for batch in every_batch():
        counted = (batch.mask > 0) & (batch.advantage != 0)
        kept = (case.kappa(batch) / plain(batch, make(case.method).level))[counted]
        low, high, tokens = low + int((kept < 0.5).sum()), high + int((kept > 0.9).sum()), tokens + len(kept)
    return low / tokens, high / tokens


def plain(batch, level):
    """[B, G, T] the ratio that an estimator of this level would use without a rule."""
    values = {
        "token": batch.ratio,
        "sequence": bounded_exp(batch.log_mean_ratio).unsqueeze(-1),
        "trajectory": batch.rho.unsqueeze(-1),
    }
    return values[level].expand_as(batch.mask)
