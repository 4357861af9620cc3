"""One learner update: score the mini-batch, ask the estimator for coefficients, step. It knows no algorithm."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from transformers import PreTrainedModel

from delaysim.estimators import base
from delaysim.estimators.advantage import advantages
from delaysim.policy.rollout import Group
from delaysim.policy.score import Row, Scores, score
from delaysim.settings.config import LearnerConf


class Collapsed(Exception):
    """Training produced a number that is not finite; the message names the update and the group."""


@dataclass(frozen=True)
class Outcome:
    """What one update saw and did, for the records."""

    batch: base.GroupBatch
    kappa: torch.Tensor
    """[B, G, T] the estimator's coefficients."""
    fresh_log_ratio: float
    """Largest |log-ratio| measured on a token at delay 0, before it is set to 0; 0 where there is none."""
    entropy: float
    """Mean softmax entropy of the current weights on response tokens [nats]."""
    grad_norm: float
    """Before clipping."""
    lr: float


class Learner:
    """The optimiser around one model."""

    def __init__(
        self, model: PreTrainedModel, estimator: ModuleType, params: Any, conf: LearnerConf, temperature: float
    ) -> None:
        self.model, self._estimator, self._params, self._conf = model, estimator, params, conf
        self._temperature = temperature
        self._names = [name for name, _ in model.named_parameters()]
        self._optimiser = torch.optim.AdamW(
            model.parameters(),
            lr=conf.lr,
            betas=(conf.beta1, conf.beta2),
            weight_decay=conf.weight_decay,
            fused=True,
        )

    def update(self, update: int, groups: Sequence[Group]) -> Outcome:
        """Train on B groups. Raises `Collapsed` and leaves the weights as they were."""
        rows = [Row(group.prompt, response.tokens) for group in groups for response in group.responses]
        scores = score(self.model, rows, self._temperature, self._conf.bucket, self._conf.pack)
        batch, fresh = self._batch(update, groups, scores)
        kappa = self._coefficients(update, groups, batch)
        weights = base.loss_weights(batch, kappa, self._conf.aggregation).flatten(0, 1)
        loss = -(scores.flat(weights).to(scores.logp.dtype) * scores.logp).sum()
        self._optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        norm, lr = self._step(update)
        return Outcome(batch, kappa, fresh, float(scores.entropy.mean()), norm, lr)

    def _batch(self, update: int, groups: Sequence[Group], scores: Scores) -> tuple[base.GroupBatch, float]:
        shape = len(groups), len(groups[0].responses), -1
        rows = shape[0] * shape[1]
        logp = scores.padded(rows, scores.logp.detach().double()).view(shape)
        mask = scores.padded(rows, torch.ones_like(scores.logp, dtype=torch.float64)).view(shape)
        behaviour = _behaviour(groups, logp)
        rewards = torch.tensor([group.rewards for group in groups], dtype=torch.float64)
        versions = torch.tensor([group.version for group in groups])
        fresh = (versions == update)[:, None, None].expand_as(logp)
        measured = ((logp - behaviour) * mask)[fresh].abs()
        batch = base.GroupBatch(
            logp=logp,
            behaviour=torch.where(fresh, logp, behaviour),
            mask=mask,
            rewards=rewards,
            advantages=advantages(rewards, self._conf.advantage),
            delays=update - versions,
            versions=versions,
        )
        return batch, float(measured.max()) if measured.numel() else 0.0

    def _coefficients(self, update: int, groups: Sequence[Group], batch: base.GroupBatch) -> torch.Tensor:
        _require_finite(update, groups, batch.log_ratio, "log-probability")
        kappa = self._estimator.coefficients(batch, self._params)
        _require_finite(update, groups, kappa, "coefficient")
        return kappa

    def _step(self, update: int) -> tuple[float, float]:
        gradients = [p.grad for p in self.model.parameters() if p.grad is not None]
        norms = torch.stack([torch.linalg.vector_norm(g, dtype=torch.float64) for g in gradients])
        norm = float(torch.linalg.vector_norm(norms))
        if not norm < float("inf"):
            raise Collapsed(f"update {update}: the gradient's norm is {norm}")
        if norm > self._conf.clip:
            torch._foreach_mul_(gradients, self._conf.clip / norm)
        lr = self._conf.lr * min(1.0, (update + 1) / max(1, self._conf.warmup))
        for group in self._optimiser.param_groups:
            group["lr"] = lr
        self._optimiser.step()
        return norm, lr

    def optimiser_state(self) -> dict[str, torch.Tensor]:
        """AdamW's moments and step counts by parameter name; empty before the first update."""
        state = self._optimiser.state
        parameters = zip(self._names, self.model.parameters(), strict=True)
        return {
            f"{name}/{key}": value.contiguous() for name, p in parameters for key, value in state.get(p, {}).items()
        }

    def load_optimiser_state(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Go on from saved moments."""
        for name, parameter in zip(self._names, self.model.parameters(), strict=True):
            keys = ("step", "exp_avg", "exp_avg_sq")
            found = {key: tensors[f"{name}/{key}"] for key in keys if f"{name}/{key}" in tensors}
            if found:
                self._optimiser.state[parameter] = found


def _behaviour(groups: Sequence[Group], like: torch.Tensor) -> torch.Tensor:
    """[B, G, T] the log-probabilities recorded at sampling, 0 on padding."""
    out = torch.zeros_like(like)
    for b, group in enumerate(groups):
        for i, response in enumerate(group.responses):
            out[b, i, : len(response.logp)] = torch.from_numpy(response.logp)
    return out


def _require_finite(update: int, groups: Sequence[Group], values: torch.Tensor, what: str) -> None:
    bad = ~values.isfinite().flatten(1).all(1)
    if bad.any():
        group = groups[int(bad.nonzero()[0, 0])].group
        raise Collapsed(f"update {update}, group {group}: a {what} is not finite")
