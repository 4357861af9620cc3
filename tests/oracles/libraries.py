"""TRL's and verl's loss of one of our batches, and its gradient with respect to the log-probabilities."""

from collections import defaultdict
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import torch
from oracles.wheels import ActorConfig, load_trl, load_verl, loss_name

UNCAPPED = 1e9


@dataclass(frozen=True)
class Outcome:
    loss: float
    gradient: torch.Tensor
    """[B, G, T] derivative of the loss in each token's log-probability."""


def differentiate(batch, loss_of):
    logp = batch.logp.flatten(0, 1).clone().requires_grad_()
    loss = loss_of(logp)
    (gradient,) = torch.autograd.grad(loss, logp)
    return Outcome(float(loss.detach()), gradient.view_as(batch.logp))


def rows(values):
    """[B, G, ...] as the libraries have it, [B*G, ...]."""
    return values.flatten(0, 1)


def longest(batch):
    """Length limit of Dr.GRPO's denominator: more than the padded width."""
    return batch.mask.shape[-1] + 3


class Trl:
    """TRL's trainers without a model."""

    def __init__(self):
        self.functions = load_trl()

    def run(self, batch, trainer="grpo", inputs=None, args=None, **options):
        """`options` are the trainer's attributes, `args` its configuration's, `inputs` its tensors [B, G, T]."""
        extra = {name: rows(value) for name, value in (inputs or {}).items()}

        def loss_of(logp):
            fake = self._trainer(logp, args or {}, {"max_completion_length": longest(batch)} | options)
            return getattr(self.functions, trainer)(fake, None, self._inputs(batch) | extra)

        return differentiate(batch, loss_of)

    def corrected(self, batch, mode, low, high, loss_type):
        """The loss of fresh responses times the importance ratio that TRL computes against their sampler."""
        ratio = self.importance_ratio(batch, mode, low, high)
        inputs = {"old_per_token_logps": batch.logp, "importance_sampling_ratio": ratio}
        options = {"use_vllm": True, "vllm_importance_sampling_correction": True, "loss_type": loss_type}
        return self.run(batch, inputs=inputs, **options)

    def importance_ratio(self, batch, mode, low, high):
        """[B, G, T or 1]; mode is one of sequence_mask, sequence_truncate, token_mask, token_truncate."""
        ratio = self.functions.importance_ratio(
            self=SimpleNamespace(
                use_vllm=True,
                vllm_importance_sampling_correction=True,
                vllm_importance_sampling_mode=mode,
                vllm_importance_sampling_clip_min=low,
                vllm_importance_sampling_clip_max=high,
            ),
            old_per_token_logps=rows(batch.logp),
            sampling_per_token_logps=rows(batch.behaviour),
            completion_mask=rows(batch.mask),
            tool_mask=None,
        )
        return ratio.unflatten(0, batch.mask.shape[:2])

    def advantages(self, rewards, scale):
        """[B, G]; scale is group or none."""
        found = self.functions.advantages(
            self=SimpleNamespace(
                multi_objective_aggregation="sum_then_normalize",
                scale_rewards=scale,
                reward_weights=torch.ones_like(rewards[0, :1]),
            ),
            rewards_per_func=rewards.reshape(-1, 1),
            unscorable_mask=torch.zeros(rewards.numel(), dtype=torch.bool),
            num_generations=rewards.shape[1],
            device=rewards.device,
        )
        return found.view_as(rewards)

    def _inputs(self, batch):
        mask, empty = rows(batch.mask), torch.zeros(batch.advantages.numel(), 1).long()
        return {
            "prompt_ids": empty,
            "prompt_mask": empty,
            "completion_ids": torch.zeros_like(mask).long(),
            "completion_mask": mask,
            "advantages": rows(batch.advantages),
            "old_per_token_logps": rows(batch.behaviour),
            "num_items_in_batch": mask.sum(),
        }

    def _trainer(self, logp, args, options):
        """The attributes of a trainer that its loss reads."""
        values = {
            "model": SimpleNamespace(training=True),
            "accelerator": SimpleNamespace(
                num_processes=1, gather=lambda x: x, reduce=lambda x, reduction: x, gather_for_metrics=lambda x: x
            ),
            "args": SimpleNamespace(**(TRL_ARGS | args)),
            "_metrics": {"train": defaultdict(list)},
            "_get_per_token_logps_and_entropies": lambda *_, **__: (logp, torch.zeros_like(logp), None),
            "get_off_policy_mask": self.functions.off_policy_mask,
            "get_gamma_weights": self.functions.gamma_weights,
        }
        return SimpleNamespace(**(TRL_TRAINER | values | options))


TRL_ARGS = {
    "delta": None,
    "sapo_temperature_pos": 1.0,
    "sapo_temperature_neg": 1.05,
    "use_bias_correction_kl": False,
    "vespo_k_pos": 2.0,
    "vespo_lambda_pos": 3.0,
    "vespo_k_neg": 3.0,
    "vespo_lambda_neg": 2.0,
    "steps_per_generation": 1,
}
TRL_TRAINER = {
    "loss_type": "grpo",
    "importance_sampling_level": "token",
    "epsilon_low": 0.2,
    "epsilon_high": 0.2,
    "beta": 0.0,
    "off_policy_mask_threshold": None,
    "top_entropy_quantile": 1.0,
    "use_vllm": False,
    "vllm_importance_sampling_correction": False,
    "aux_loss_enabled": False,
    "current_gradient_accumulation_steps": 1,
    "_entropy_bonus_enabled": False,
}


class Verl:
    """verl's functions on our batches."""

    def __init__(self):
        self.functions = load_verl()

    def run(self, name, batch, aggregation, weights=None, **config):
        """A policy loss by name; `weights` [B, G, T] multiply it, `config` replaces verl's published settings."""
        settings = VERL_CONFIG | {"global_batch_info": self._scale(batch, aggregation)} | config
        old = "rollout_log_prob" if name == "reinforce" else "old_log_prob"

        def loss_of(logp):
            return getattr(self.functions, loss_name(name))(
                **{old: rows(batch.behaviour)},
                log_prob=logp,
                advantages=rows(batch.advantage * batch.mask),
                response_mask=rows(batch.mask),
                loss_agg_mode=AGGREGATIONS[aggregation],
                config=ActorConfig(**settings),
                rollout_is_weights=None if weights is None else rows(weights),
            )[0]

        return differentiate(batch, loss_of)

    def weights(self, batch, level, threshold, normalise=False):
        """[B, G, T] importance weights; level is token or sequence, threshold a cap or "low_high" for a mask."""
        return self.corrected(batch, level, threshold, normalise)[0].view_as(batch.mask)

    def corrected(self, batch, level, threshold, normalise=False):
        """Weights [B*G, T] and their metrics."""
        return self.functions.compute_rollout_correction_weights(
            rows(batch.log_ratio), rows(batch.mask), level, threshold, rollout_is_batch_normalize=normalise
        )

    def penalty(self, batch, kind, aggregation):
        """The KL penalty towards the reference as a loss."""
        mask = rows(batch.mask)
        scale = self._scale(batch, aggregation)

        def loss_of(logp):
            kl = self.functions.kl_penalty(logp, rows(batch.reference), kind)
            return self.functions.agg_loss(kl, mask, AGGREGATIONS[aggregation], **scale)

        return differentiate(batch, loss_of)

    def advantages(self, name, rewards, **options):
        """[B, G]; name is grpo or rloo."""
        prompts, group = rewards.shape
        function = getattr(self.functions, f"compute_{name}_outcome_advantage")
        index = np.repeat(np.arange(prompts), group)
        flat = rewards.reshape(-1, 1).clone()
        return function(flat, torch.ones_like(flat), index, **options)[0].view_as(rewards)

    def _scale(self, batch, aggregation):
        return {"loss_scale_factor": longest(batch)} if aggregation == "fixed_length" else {}


AGGREGATIONS = {
    "seq_mean_token_mean": "seq-mean-token-mean",
    "seq_mean_token_sum": "seq-mean-token-sum",
    "token_mean": "token-mean",
    "fixed_length": "seq-mean-token-sum-norm",
}
VERL_CONFIG = {
    "clip_ratio": 0.2,
    "clip_ratio_low": 0.2,
    "clip_ratio_high": 0.2,
    "clip_ratio_c": UNCAPPED,
    "tau_pos": 1.0,
    "tau_neg": 1.05,
    "policy_loss": None,
}
