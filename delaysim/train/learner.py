"""One learner update: score the mini-batch, ask the estimator for coefficients, step. It knows no algorithm."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from transformers import PreTrainedModel

from delaysim import measures
from delaysim.errors import RunFailed
from delaysim.estimators import base
from delaysim.estimators.advantage import advantages
from delaysim.estimators.interface import Estimator
from delaysim.estimators.penalty import penalty
from delaysim.policy.rollout import Group, Logps
from delaysim.policy.sample import Decoding
from delaysim.policy.score import Row, Scores, score
from delaysim.settings.behaviour import RECOMPUTED, SAMPLER
from delaysim.settings.config import LearnerConf
from delaysim.train.behaviour import Mismatch, behaviour_of, mismatch_of
from delaysim.train.gradient import NO_RULE, Gradient, Rule


class Collapsed(Exception):
    """Training produced a number that is not finite; the message names the update and the group."""


@dataclass(frozen=True)
class Outcome:
    """What one update saw and did, for the records. Of several steps on one mini-batch, the last."""

    batch: base.GroupBatch
    kappa: torch.Tensor
    """[B, G, T] the estimator's coefficients."""
    level: str
    """The plain ratio they stand for: token | sequence | trajectory | none."""
    fresh_log_ratio: float
    """Largest |log-ratio| measured on a token at delay 0, before it may be set to 0; 0 where there is none."""
    entropy: float
    """Mean softmax entropy of the current weights on response tokens [nats]."""
    grad_norm: float
    """Before clipping; of what the update rule made of the gradient."""
    grad_cos: float | None
    """Cosine of this gradient with the previous one; None at the first, and for a model too large to keep one."""
    lr: float
    """After the update rule's scaling; 0 where it skipped the step."""
    mismatch: Mismatch | None = None
    """Between sampler and learner at launch, where both log-probabilities exist."""

    @cached_property
    def kept(self) -> torch.Tensor:
        """[B, G] mean coefficient of each response."""
        return measures.kept(self.batch, self.kappa)

    @cached_property
    def touched(self) -> torch.Tensor:
        """[B, G] tokens of each response that are not at their plain ratio."""
        return measures.touched(self.batch, self.kappa, self.level)


class Learner:
    """The optimiser around one model."""

    def __init__(
        self,
        model: PreTrainedModel,
        estimator: Estimator,
        conf: LearnerConf,
        decoding: Decoding,
        rule: Rule = NO_RULE,
        behaviour: str = RECOMPUTED,
    ) -> None:
        self.model, self._estimator, self._rule, self._conf = model, estimator, rule, conf
        self._decoding, self._behaviour = decoding, behaviour
        self._reference = copy.deepcopy(model) if conf.kl > 0 else None
        self._gradient = Gradient(model, rule)
        self._names = [name for name, _ in model.named_parameters()]
        self._optimiser = torch.optim.AdamW(
            model.parameters(),
            lr=conf.lr,
            betas=(conf.beta1, conf.beta2),
            weight_decay=conf.weight_decay,
            fused=True,
        )

    def update(self, update: int, groups: Sequence[Group]) -> Outcome:
        """Train on B groups. Raises `Collapsed` and leaves the weights as the last whole step left them."""
        first = outcome = self._one_step(update, groups, None)
        for _ in range(self._conf.updates_per_batch - 1):
            outcome = self._one_step(update, groups, first.batch)
        mismatch = mismatch_of(groups, first.batch, self._estimator)
        return replace(outcome, fresh_log_ratio=first.fresh_log_ratio, mismatch=mismatch)

    @torch.no_grad()
    def recompute(self, rows: Sequence[Row]) -> list[Logps]:
        """Each row's log-probabilities under the present weights, as an update scores them."""
        scores = self._score(self.model, rows)
        table = scores.padded(len(rows), scores.logp).float().cpu().numpy()
        return [table[i, : len(row.response)].copy() for i, row in enumerate(rows)]

    def _one_step(self, update: int, groups: Sequence[Group], first: base.GroupBatch | None) -> Outcome:
        rows = [Row(group.prompt, response.tokens) for group in groups for response in group.responses]
        scores = self._score(self.model, rows)
        batch, fresh = self._batch(update, groups, rows, scores, first)
        kappa = self._coefficients(update, groups, batch)
        batch = replace(batch, advantages=self._rule.advantages(batch, kappa, lambda: self._squared_norms(rows, batch)))
        weights = self._loss_weights(batch, kappa)
        loss = -(scores.flat(weights.flatten(0, 1)).to(scores.logp.dtype) * scores.logp).sum()
        self._optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        cosine, applied = self._gradient.direct()
        norm, lr = self._step(update, self._rule.step_scale(batch, kappa) if applied else 0.0)
        return Outcome(batch, kappa, self._estimator.level, fresh, float(scores.entropy.mean()), norm, cosine, lr)

    def _score(self, model: PreTrainedModel, rows: Sequence[Row]) -> Scores:
        return score(model, rows, self._decoding.temperature, self._conf.bucket, self._conf.pack)

    def _batch(
        self,
        update: int,
        groups: Sequence[Group],
        rows: Sequence[Row],
        scores: Scores,
        first: base.GroupBatch | None,
    ) -> tuple[base.GroupBatch, float]:
        shape = len(groups), len(groups[0].responses), -1
        logp = scores.padded(len(rows), scores.logp.detach().double()).view(shape)
        if first is not None:
            shared = advantages(first.rewards, self._conf.advantage, first.lengths)
            return replace(first, logp=logp, proximal=first.logp, advantages=shared), 0.0
        mask = scores.padded(len(rows), torch.ones_like(scores.logp, dtype=torch.float64)).view(shape)
        behaviour = behaviour_of(groups, logp, self._behaviour)
        rewards = torch.tensor([group.rewards for group in groups], dtype=torch.float64)
        versions = torch.tensor([group.version for group in groups])
        fresh = (versions == update)[:, None, None].expand_as(logp)
        measured = ((logp - behaviour) * mask)[fresh].abs()
        batch = base.GroupBatch(
            logp=logp,
            behaviour=behaviour if self._behaviour == SAMPLER else torch.where(fresh, logp, behaviour),
            mask=mask,
            rewards=rewards,
            advantages=advantages(rewards, self._conf.advantage, mask.sum(-1)),
            delays=update - versions,
            versions=versions,
            reference=self._reference_logp(rows, shape),
        )
        return batch, float(measured.max()) if measured.numel() else 0.0

    def _reference_logp(self, rows: Sequence[Row], shape: tuple[int, int, int]) -> torch.Tensor | None:
        if self._reference is None:
            return None
        with torch.no_grad():
            scores = self._score(self._reference, rows)
        return scores.padded(len(rows), scores.logp.double()).view(shape)

    def _coefficients(self, update: int, groups: Sequence[Group], batch: base.GroupBatch) -> torch.Tensor:
        _require_finite(update, groups, batch.log_ratio, "log-probability")
        kappa = self._estimator.coefficients(batch)
        if kappa.shape != batch.mask.shape:
            shapes = f"{tuple(kappa.shape)}, not {tuple(batch.mask.shape)}"
            raise RunFailed(f"{self._estimator.name} gave coefficients {shapes}: see delaysim check-estimator")
        _require_finite(update, groups, kappa, "coefficient")
        return kappa

    def _loss_weights(self, batch: base.GroupBatch, kappa: torch.Tensor) -> torch.Tensor:
        conf, longest = self._conf, self._decoding.max_new_tokens
        weights = base.loss_weights(batch, kappa, conf.aggregation, longest)
        if conf.kl > 0:
            share = base.aggregation_weights(batch.mask, conf.aggregation, longest)
            weights = weights + conf.kl * penalty(batch, conf.kl_penalty) * share
        return weights

    def _squared_norms(self, rows: Sequence[Row], batch: base.GroupBatch) -> torch.Tensor:
        """[B, G] squared norm of each response's grad log pi, one backward each; 0 where rewards are equal."""
        mixed = (batch.rewards.amax(1, keepdim=True) > batch.rewards.amin(1, keepdim=True)).expand_as(batch.rewards)
        norms = [self._squared_norm(row) if m else 0.0 for row, m in zip(rows, mixed.flatten().tolist(), strict=True)]
        return torch.tensor(norms, dtype=torch.float64).view_as(batch.rewards)

    def _squared_norm(self, row: Row) -> float:
        parameters = [p for p in self.model.parameters() if p.requires_grad]
        gradients = torch.autograd.grad(self._score(self.model, [row]).logp.sum(), parameters, allow_unused=True)
        return sum(float(g.double().square().sum()) for g in gradients if g is not None)

    def _step(self, update: int, scale: float) -> tuple[float, float]:
        gradients = [p.grad for p in self.model.parameters() if p.grad is not None]
        norms = torch.stack([torch.linalg.vector_norm(g, dtype=torch.float64) for g in gradients])
        norm = float(torch.linalg.vector_norm(norms))
        if not norm < float("inf"):
            raise Collapsed(f"update {update}: the gradient's norm is {norm}")
        if norm > self._conf.clip:
            torch._foreach_mul_(gradients, self._conf.clip / norm)
        lr = scale * self._conf.lr * min(1.0, (update + 1) / max(1, self._conf.warmup))
        for group in self._optimiser.param_groups:
            group["lr"] = lr
        if scale > 0:
            self._optimiser.step()
        return norm, lr

    def optimiser_state(self) -> dict[str, torch.Tensor]:
        """AdamW's moments and counts by parameter name, and the gradient remembered; empty before the first update."""
        state = self._optimiser.state
        parameters = zip(self._names, self.model.parameters(), strict=True)
        moments = {
            f"{name}/{key}": value.contiguous() for name, p in parameters for key, value in state.get(p, {}).items()
        }
        return moments | self._gradient.state()

    def load_optimiser_state(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Go on from saved moments."""
        self._gradient.load(tensors)
        for name, parameter in zip(self._names, self.model.parameters(), strict=True):
            keys = ("step", "exp_avg", "exp_avg_sq")
            found = {key: tensors[f"{name}/{key}"] for key in keys if f"{name}/{key}" in tensors}
            if found:
                self._optimiser.state[parameter] = found


def _require_finite(update: int, groups: Sequence[Group], values: torch.Tensor, what: str) -> None:
    bad = ~values.isfinite().flatten(1).all(1)
    if bad.any():
        group = groups[int(bad.nonzero()[0, 0])].group
        raise Collapsed(f"update {update}, group {group}: a {what} is not finite")
