"""A mixture of experts and its dense control: built from a seed, taught a chain, and moved by policy gradients."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel, Qwen3Config, Qwen3ForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM

from delaysim.estimators.advantage import advantages
from delaysim.moe_noise.chain import MarkovChain, Tokens
from delaysim.moe_noise.setting import BF16, GROUP, VOCABULARY, Setting
from delaysim.policy.layout import Row
from delaysim.policy.noise import GumbelNoise
from delaysim.policy.sample import Decoding, sample
from delaysim.policy.score import score
from delaysim.settings.config import SHARED_RECIPE

HIDDEN, EXPERT_SIZE, INITIALIZER_RANGE = 64, 64, 0.05
TEACHING_LR, TEACHING_BATCH, WARMUP = 3e-3, 8, 20
UPDATE_LR, PROMPTS, RESPONSE = 1e-4, 4, 32
"""Of a policy-gradient update: AdamW's rate, groups, and tokens in a response."""

Progress = Callable[[str, int, int], None]
"""Called with what is being done, steps done, steps in all."""


def build(setting: Setting, seed: int, dense: bool) -> PreTrainedModel:
    """New weights; the dense model has as many weights at work in a token as the mixture, its router aside."""
    shared: dict[str, Any] = {
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN,
        "intermediate_size": EXPERT_SIZE * setting.top_k,
        "num_hidden_layers": setting.layers,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "max_position_embeddings": setting.length + 1,
        "tie_word_embeddings": False,
        "initializer_range": INITIALIZER_RANGE,
    }
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        if dense:
            return Qwen3ForCausalLM(Qwen3Config(**shared)).eval()
        config = Qwen3MoeConfig(
            **shared,
            num_experts=setting.experts,
            num_experts_per_tok=setting.top_k,
            moe_intermediate_size=EXPERT_SIZE,
            norm_topk_prob=True,
        )
        model = Qwen3MoeForCausalLM(config).eval()
    model.set_experts_implementation(setting.learner)
    return model


def engine(setting: Setting, model: PreTrainedModel) -> PreTrainedModel:
    """A: the same weights, computed otherwise."""
    own: Any = copy.deepcopy(model).requires_grad_(False)
    if setting.engine == BF16:
        return own.to(torch.bfloat16)  # type: ignore[no-any-return]
    if isinstance(own, Qwen3MoeForCausalLM):
        own.set_experts_implementation(setting.engine)
    return own  # type: ignore[no-any-return]


def rows_of(tokens: Tokens) -> list[Row]:
    """The first token is the prompt, the others are scored."""
    return [Row(sequence[:1], sequence[1:]) for sequence in tokens]


def teach(model: PreTrainedModel, chain: MarkovChain, setting: Setting, progress: Progress) -> None:
    """Next-token prediction on the chain, in place."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=TEACHING_LR, weight_decay=0.01)
    for step in range(setting.teaching):
        done = step / setting.teaching
        optimiser.param_groups[0]["lr"] = TEACHING_LR * min((step + 1) / WARMUP, 1.0) * (1 - 0.9 * done)
        rows = rows_of(chain.draw("moe_noise/teaching", step, TEACHING_BATCH, setting.length + 1))
        _step(model, optimiser, -score(model, rows, 1.0, TEACHING_BATCH).logp.mean())
        progress("teaching the model", step + 1, setting.teaching)


def advantages_of(rewards: NDArray[np.float64]) -> torch.Tensor:
    """[groups, G] normalised by group, as every estimator's are by default."""
    given = torch.from_numpy(rewards)
    return advantages(given, SHARED_RECIPE.advantage, torch.ones_like(given))


class Updates:
    """Policy-gradient updates of one model, each on responses of its own: REINFORCE with group-normalised rewards."""

    def __init__(self, model: PreTrainedModel, chain: MarkovChain) -> None:
        self._model, self._chain = model, chain
        self._optimiser = torch.optim.AdamW(model.parameters(), lr=UPDATE_LR, weight_decay=0.0)
        self.done = 0

    def until(self, update: int, progress: Progress) -> None:
        """Make updates until so many are done."""
        for number in range(self.done, update):
            rows = self._responses(number)
            weighed = advantages_of(self._chain.rewards([row.response for row in rows])).float()
            scores = score(self._model, rows, 1.0, len(rows))
            weights = weighed.flatten()[scores.row]
            _step(self._model, self._optimiser, -(weights * scores.logp).mean())
            progress("updates", number + 1, update)
        self.done = max(self.done, update)

    def _responses(self, number: int) -> list[Row]:
        prompts = list(self._chain.draw("moe_noise/prompt", number, PROMPTS, 1))
        keys = [(number, i) for i in range(PROMPTS * GROUP)]
        noise = GumbelNoise(self._chain.seed, "moe_noise/sampling", keys, VOCABULARY)
        drawn = sample(self._model, prompts, GROUP, Decoding(RESPONSE, 1.0, frozenset()), noise)
        return [Row(prompts[i // GROUP], response.tokens) for i, response in enumerate(drawn)]


def _step(model: PreTrainedModel, optimiser: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()
    optimiser.zero_grad()
