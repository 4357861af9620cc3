"""One learner update: score the mini-batch, ask the estimator for coefficients, step. It knows no algorithm."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import torch
from transformers import PreTrainedModel

from delaysim import measures
from delaysim.errors import RunFailed
from delaysim.estimators import base
from delaysim.estimators.interface import Estimator
from delaysim.estimators.penalty import penalty
from delaysim.policy.layout import Row
from delaysim.policy.lora import adapters_off, base_of
from delaysim.policy.rollout import Group
from delaysim.policy.routing import Routing, watching
from delaysim.policy.sample import Decoding
from delaysim.policy.score import Scores, together
from delaysim.settings.behaviour import RECOMPUTED, SAMPLER
from delaysim.settings.config import LearnerConf
from delaysim.settings.routing import NONE, RoutingConf
from delaysim.train.behaviour import Mismatch, mismatch_of
from delaysim.train.flips import Flips, flips_of, replayed
from delaysim.train.gradient import NO_RULE, Gradient, Rule, trained
from delaysim.train.minibatch import again, fresh_log_ratio, scored, some, unscored
from delaysim.train.schedule import peak_share
from delaysim.train.scoring import MicroBatch, Scorer

UNWATCHED = RoutingConf()
"""Nobody asks for experts."""


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
    flips: Flips | None = None
    """Of experts between sampler, launch and update, where they are recorded."""

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
        updates: int = 0,
        routing: RoutingConf = UNWATCHED,
    ) -> None:
        """`updates` of the whole run, for a learning rate that falls."""
        self.model, self._estimator, self._rule, self._conf = model, estimator, rule, conf
        self._longest, self._updates, self._behaviour = decoding.max_new_tokens, updates, behaviour
        self._replay, self._same_at_0 = routing.replay, behaviour != SAMPLER and routing.lag == 0
        self._routing = _watched(model, routing)
        self._scorer = Scorer(model, conf, decoding.temperature, self._routing)
        kept = replace(conf, gradient_checkpointing=False)  # no gradients go through it
        self._reference = Scorer(base_of(model), kept, decoding.temperature) if conf.kl > 0 else None
        self._gradient = Gradient(model, rule)
        self._parameters = dict(trained(model))
        self._optimiser = torch.optim.AdamW(
            self._parameters.values(),
            lr=conf.lr,
            betas=(conf.beta1, conf.beta2),
            weight_decay=conf.weight_decay,
            fused=True,
        )

    def update(self, update: int, groups: Sequence[Group]) -> Outcome:
        """Train on B groups. Raises `Collapsed` and leaves the weights as the last whole step left them."""
        with watching(self._routing):
            return self._update(update, groups)

    def _update(self, update: int, groups: Sequence[Group]) -> Outcome:
        rows = [Row(g.prompt, r.tokens, replayed(r, self._replay)) for g in groups for r in g.responses]
        unseen = unscored(update, groups, self._conf.advantage, self._behaviour)
        unseen = replace(unseen, reference=self._reference_logp(rows, unseen))
        share = base.aggregation_weights(unseen.mask, self._conf.aggregation, self._longest)
        work = _Work(update, groups, rows, unseen, share, self._scorer.micro_batches(rows))
        first = outcome = self._one_step(work)
        for _ in range(self._conf.updates_per_batch - 1):
            outcome = self._one_step(replace(work, unseen=again(first.batch, self._conf.advantage)))
        mismatch = mismatch_of(groups, first.batch, self._estimator)
        return replace(outcome, fresh_log_ratio=first.fresh_log_ratio, mismatch=mismatch, flips=first.flips)

    def _one_step(self, work: "_Work") -> Outcome:
        self._optimiser.zero_grad(set_to_none=True)
        alone = self._estimator.scope == "response" and not self._rule.rebases
        backward = self._backward_by_part if alone and len(work.parts) > 1 else self._backward_as_a_whole
        scores, batch, kappa = backward(work)
        fresh = fresh_log_ratio(work.unseen, _laid_out(scores, work.unseen))
        cosine, applied = self._gradient.direct()
        norm, lr = self._step(work.update, self._rule.step_scale(batch, kappa) if applied else 0.0)
        entropy, flips = float(scores.entropy.mean()), flips_of(work.groups, work.rows, scores.chosen)
        return Outcome(batch, kappa, self._estimator.level, fresh, entropy, norm, cosine, lr, flips=flips)

    def _backward_as_a_whole(self, work: "_Work") -> "_Seen":
        """Coefficients from all responses together: of several micro-batches, each is scored again with gradients."""
        at_once = len(work.parts) == 1
        with torch.set_grad_enabled(at_once):
            scores = self._scorer.score(work.rows, work.parts)
        batch = self._as_seen(work, scores)
        kappa = self._coefficients(work.update, work.groups, batch)
        norms = partial(self._squared_norms, work.rows, batch.rewards)
        batch = replace(batch, advantages=self._rule.advantages(batch, kappa, norms))
        weights = self._loss_weights(batch, kappa, work.share)
        for part in work.parts:
            _backward(scores if at_once else self._scorer.score(work.rows, [part]), weights)
        return scores, batch, kappa

    def _backward_by_part(self, work: "_Work") -> "_Seen":
        """Coefficients of each response alone, so that every micro-batch is scored once."""
        seen, kappa, weights = [], torch.zeros_like(work.share), torch.zeros_like(work.share)
        for part in work.parts:
            scores = self._scorer.score(work.rows, [part])
            index = scores.row.unique()
            batch = some(self._as_seen(work, scores), index)
            groups = [work.groups[i // work.share.shape[1]] for i in index.tolist()]
            own = self._coefficients(work.update, groups, batch)
            kappa.flatten(0, 1)[index] = own[:, 0]
            share = work.share.flatten(0, 1)[index][:, None]
            weights.flatten(0, 1)[index] = self._loss_weights(batch, own, share)[:, 0]
            _backward(scores, weights)
            seen.append(scores.detached())
        scores = together(seen)
        return scores, self._as_seen(work, scores), kappa

    def _as_seen(self, work: "_Work", scores: Scores) -> base.GroupBatch:
        return scored(work.unseen, _laid_out(scores, work.unseen), self._same_at_0)

    def _reference_logp(self, rows: Sequence[Row], batch: base.GroupBatch) -> torch.Tensor | None:
        if self._reference is None:
            return None
        with torch.no_grad(), adapters_off(self._reference.model):
            return _laid_out(self._reference.score(rows, self._reference.micro_batches(rows)), batch)

    def _coefficients(self, update: int, groups: Sequence[Group], batch: base.GroupBatch) -> torch.Tensor:
        _require_finite(update, groups, batch.log_ratio, "log-probability")
        kappa = self._estimator.coefficients(batch)
        if kappa.shape != batch.mask.shape:
            shapes = f"{tuple(kappa.shape)}, not {tuple(batch.mask.shape)}"
            raise RunFailed(f"{self._estimator.name} gave coefficients {shapes}: see delaysim check-estimator")
        _require_finite(update, groups, kappa, "coefficient")
        return kappa

    def _loss_weights(self, batch: base.GroupBatch, kappa: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
        weights = base.weighted(batch, kappa, share)
        if self._conf.kl > 0:
            weights = weights + self._conf.kl * penalty(batch, self._conf.kl_penalty) * share
        return weights

    def _squared_norms(self, rows: Sequence[Row], rewards: torch.Tensor) -> torch.Tensor:
        """[B, G] squared norm of each response's grad log pi, one backward each; 0 where rewards are equal."""
        mixed = (rewards.amax(1, keepdim=True) > rewards.amin(1, keepdim=True)).expand_as(rewards)
        norms = [self._squared_norm(row) if m else 0.0 for row, m in zip(rows, mixed.flatten().tolist(), strict=True)]
        return torch.tensor(norms, dtype=torch.float64).view_as(rewards)

    def _squared_norm(self, row: Row) -> float:
        logp = self._scorer.score([row], self._scorer.micro_batches([row])).logp
        gradients = torch.autograd.grad(logp.sum(), list(self._parameters.values()), allow_unused=True)
        return sum(float(g.double().square().sum()) for g in gradients if g is not None)

    def _step(self, update: int, scale: float) -> tuple[float, float]:
        gradients = [p.grad for p in self._parameters.values() if p.grad is not None]
        norms = torch.stack([torch.linalg.vector_norm(g, dtype=torch.float64) for g in gradients])
        norm = float(torch.linalg.vector_norm(norms))
        if not norm < float("inf"):
            raise Collapsed(f"update {update}: the gradient's norm is {norm}")
        if norm > self._conf.clip:
            torch._foreach_mul_(gradients, self._conf.clip / norm)
        lr = scale * self._conf.lr * peak_share(self._conf, update, self._updates)
        for group in self._optimiser.param_groups:
            group["lr"] = lr
        if scale > 0:
            self._optimiser.step()
        return norm, lr

    def optimiser_state(self) -> dict[str, torch.Tensor]:
        """AdamW's moments and counts by parameter name, and the gradient remembered; empty before the first update."""
        state = self._optimiser.state
        moments = {
            f"{name}/{key}": value.contiguous()
            for name, p in self._parameters.items()
            for key, value in state.get(p, {}).items()
        }
        return moments | self._gradient.state()

    def load_optimiser_state(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Go on from saved moments, given at once or in parts."""
        self._gradient.load(tensors)
        for name, parameter in self._parameters.items():
            keys = ("step", "exp_avg", "exp_avg_sq")
            kept = {key: tensors.get(f"{name}/{key}") for key in keys}
            found = {key: value.to(parameter.device) for key, value in kept.items() if value is not None}
            self._optimiser.state[parameter] |= found


@dataclass(frozen=True)
class _Work:
    """One optimiser step's input."""

    update: int
    groups: Sequence[Group]
    rows: Sequence[Row]
    """Their responses, group by group."""
    unseen: base.GroupBatch
    """Without the current log-probabilities."""
    share: torch.Tensor
    """[B, G, T] aggregation weights of the whole mini-batch."""
    parts: Sequence[MicroBatch]


_Seen = tuple[Scores, base.GroupBatch, torch.Tensor]
"""Of a whole mini-batch: scores, what the estimator saw, its coefficients."""


def _watched(model: PreTrainedModel, conf: RoutingConf) -> Routing | None:
    """The model's routers, where an update records or replays experts. Raises UserError where it cannot."""
    routing = Routing(model) if conf.watched else None
    if routing is not None and conf.replay != NONE:
        routing.require_known_weights()
    return routing


def _laid_out(scores: Scores, like: base.GroupBatch) -> torch.Tensor:
    """[B, G, T] log-probabilities in float64 on the CPU, 0 where nothing was scored."""
    b, g, t = like.mask.shape
    return scores.padded(b * g, scores.logp.detach().double(), t).view(b, g, t)


def _backward(scores: Scores, weights: torch.Tensor) -> None:
    """Add the gradient of these responses' share in the loss, weights [B, G, T]."""
    loss = -(scores.flat(weights.flatten(0, 1)) * scores.logp).sum()
    loss.backward()  # type: ignore[no-untyped-call]


def _require_finite(update: int, groups: Sequence[Group], values: torch.Tensor, what: str) -> None:
    bad = ~values.isfinite().flatten(1).all(1)
    if bad.any():
        group = groups[int(bad.nonzero()[0, 0])].group
        raise Collapsed(f"update {update}, group {group}: a {what} is not finite")
