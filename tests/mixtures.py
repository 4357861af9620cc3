"""Small mixtures of experts of several families with new weights, responses of theirs, and learners on them."""

from dataclasses import replace

import numpy as np
import torch
import transformers

from delaysim import estimators
from delaysim.policy.layout import Row
from delaysim.policy.noise import GumbelNoise
from delaysim.policy.rollout import Group
from delaysim.policy.routing import Routing
from delaysim.policy.sample import Decoding, sample
from delaysim.settings.config import LearnerConf
from delaysim.settings.routing import RoutingConf
from delaysim.train.gradient import NO_RULE
from delaysim.train.learner import Learner
from delaysim.train.scoring import Scorer, rescored

VOCABULARY, TEMPERATURE, LONGEST = 32, 0.8, 10
SHAPE = {
    "vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 16, "num_hidden_layers": 3,
    "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 128,
    "bos_token_id": None, "eos_token_id": None, "pad_token_id": None,
}  # fmt: skip
FAMILIES = {
    "Qwen3Moe": {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "norm_topk_prob": True},
    "Qwen2Moe": {
        "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16,
    },
    "Mixtral": {"num_local_experts": 8, "num_experts_per_tok": 2},
    "Olmoe": {"num_experts": 8, "num_experts_per_tok": 3},
    "GptOss": {"num_local_experts": 8, "num_experts_per_tok": 2},
    "GraniteMoe": {"num_local_experts": 8, "num_experts_per_tok": 2},
}  # fmt: skip
"""By what transformers calls them: weights of all, of all renormalised, and among the chosen."""
DEEPSEEK = {
    "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "n_group": 2, "topk_group": 1,
    "q_lora_rank": 8, "kv_lora_rank": 8, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8,
    "first_k_dense_replace": 0, "head_dim": 8,
}  # fmt: skip
PROMPTS = [np.arange(first, first + size, dtype=np.int32) for first, size in ((3, 2), (8, 9), (1, 4))]


def mixture(family="Qwen3Moe", dtype=torch.float32, seed=0, **settings):
    """A model whose weights are large enough for its routers to have opinions."""
    torch.set_num_threads(1)
    experts = {"DeepseekV3": DEEPSEEK, "Qwen3": {}} | FAMILIES
    config = getattr(transformers, f"{family}Config")(**{**SHAPE, **experts[family], **settings})
    model, generator = getattr(transformers, f"{family}ForCausalLM")(config), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.copy_(0.2 * torch.randn(parameter.shape, generator=generator))
    return model.to(dtype).eval()


def drawn(model, seed=0, size=4, stop=range(6), longest=LONGEST):
    """Groups of `size` responses to PROMPTS with the sampler's routes, some cut at `longest`, some finished early."""
    noise = GumbelNoise(seed, "test", [(b, i) for b in range(3) for i in range(size)], VOCABULARY)
    responses = sample(model, PROMPTS, size, Decoding(longest, TEMPERATURE, frozenset(stop), routes=True), noise)
    rewards = tuple(float(i % 2) for i in range(size))
    return [Group(b, b, PROMPTS[b], tuple(responses[size * b : size * (b + 1)]), rewards) for b in range(3)]


def launched(model, groups, replay="r2", **settings):
    """The groups with what the learner's own pass says at launch."""
    rows = rows_of(groups, routes=True)
    said = iter(rescored(conf(**settings), TEMPERATURE, RoutingConf(replay, record=True), model, rows))
    return [replace(g, responses=tuple(_with(r, next(said)) for r in g.responses)) for g in groups]


def rows_of(groups, routes=False):
    """Every response as a row, with the sampler's routes where asked."""
    return [Row(g.prompt, r.tokens, r.routes if routes else None) for g in groups for r in g.responses]


def natural(model, groups, **settings):
    """By response, the experts that a forward pass chooses."""
    said = rescored(conf(**settings), TEMPERATURE, RoutingConf(record=True), model, rows_of(groups))
    return [one.routes for one in said]


def conf(**settings):
    """Of a learner that neither warms up nor clips."""
    return LearnerConf(**{"lr": 1e-2, "warmup": 0, "clip": 1e9, "bucket": 64, **settings})


def learner(model, replay="none", name="is", **settings):
    """A learner that records experts, and may replay them."""
    decoding = Decoding(LONGEST, TEMPERATURE, frozenset())
    routing = RoutingConf(replay, record=True)
    return Learner(model, estimators.make(name), conf(**settings), decoding, NO_RULE, routing=routing)


def scores_of(model, rows, **settings):
    """Log-probabilities of rows [tokens, in the order of rows], and the experts chosen by row."""
    routing = Routing(model)
    scorer = Scorer(model, conf(**settings), TEMPERATURE, routing)
    with routing.watching(), torch.no_grad():
        scores = scorer.score(rows, scorer.micro_batches(rows))
    return scores.padded(len(rows), scores.logp.double()), scores.chosen


def gradient_of(model):
    """The gradient a learner left on its model; experts that nobody chose have none."""
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]).double()


def share_apart(a, b):
    """Share of (token, layer) pairs whose experts differ between two lists of records."""
    apart = [(np.sort(x) != np.sort(y)).any(-1) for x, y in zip(a, b, strict=True)]
    return float(np.concatenate(apart).mean())


def at_random(groups, seed=0, experts=8):
    """The groups with routes that no router would choose: distinct experts at random, alike at a group's prompt."""
    rng = np.random.default_rng(seed)

    def routes(like):
        return rng.random((*like.shape[:2], experts)).argsort(-1)[..., : like.shape[2]].astype(np.int16)

    found = []
    for group in groups:
        prompt = routes(group.responses[0].routes[: len(group.prompt)])
        tables = [np.concatenate((prompt, routes(r.routes[len(prompt) :]))) for r in group.responses]
        made = [replace(r, routes=t, recomputed_routes=t) for r, t in zip(group.responses, tables, strict=True)]
        found.append(replace(group, responses=tuple(made)))
    return found


def _with(response, said):
    return replace(response, recomputed=said.logp, recomputed_routes=said.routes)
