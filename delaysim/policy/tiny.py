"""The tiny default: a small Qwen3 from its config, taught the chain task by supervised fine-tuning (docs/tiny.md)."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import (
    PreTrainedModel,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

from delaysim.files import digest
from delaysim.policy.base import cached
from delaysim.policy.codec import CharacterCodec
from delaysim.policy.experts import set_experts
from delaysim.policy.layout import Row
from delaysim.policy.score import score
from delaysim.rng import stream
from delaysim.settings.models import GROUPED, TinyModelConf, TinyMoeConf
from delaysim.tasks.chain import MIXTURE, SLIP, Chain, draw_demonstration, draw_digits, worked
from delaysim.tensors import load_file, save_tensors

RECIPE = 1
"""Raise when the recipe below changes: cached bases of another recipe are then not used."""
CURRICULUM_SHARE, CURRICULUM_TERMS = 0.25, 4
"""The first steps show short, fully worked, correct answers only; without them the mixture is not learned."""
WARMUP, FINAL_LR = 50, 0.02

Progress = Callable[[str, int, int], None]
"""Called with what is being done, steps done, steps in all."""


def build_config(conf: TinyModelConf) -> Qwen3Config | Qwen3MoeConfig:
    """The architecture: untied head and head dimension 32, so that the same model runs in vLLM."""
    settings: dict[str, Any] = {
        "vocab_size": CharacterCodec().vocabulary,
        "hidden_size": conf.hidden_size,
        "intermediate_size": conf.intermediate_size,
        "num_hidden_layers": conf.layers,
        "num_attention_heads": conf.heads,
        "num_key_value_heads": conf.kv_heads,
        "head_dim": conf.head_dim,
        "max_position_embeddings": 128,
        "tie_word_embeddings": False,
        "initializer_range": conf.initializer_range,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0},
        "bos_token_id": CharacterCodec.BOS,
        "eos_token_id": CharacterCodec.EOS,
        "pad_token_id": 0,
    }
    if not isinstance(conf, TinyMoeConf):
        return Qwen3Config(**settings)
    settings["experts_implementation"] = GROUPED
    return Qwen3MoeConfig(
        **settings,
        num_experts=conf.experts,
        num_experts_per_tok=conf.experts_per_token,
        moe_intermediate_size=conf.expert_size,
        norm_topk_prob=True,
    )


def build_model(conf: TinyModelConf) -> PreTrainedModel:
    """The architecture with new weights, from torch's own random numbers."""
    config = build_config(conf)
    return Qwen3ForCausalLM(config) if isinstance(config, Qwen3Config) else Qwen3MoeForCausalLM(config)


def load_tiny(conf: TinyModelConf, task: Chain, progress: Progress) -> PreTrainedModel:
    """The base model, built on first use: half a minute on one core, a mixture of experts about a minute."""
    place = cached("base", base_key(conf, task), lambda folder: _build(conf, task, folder, progress))
    model = build_model(conf)
    model.load_state_dict(load_file(place / "model.safetensors"))
    if isinstance(conf, TinyMoeConf):
        set_experts(model, conf.experts_implementation)
    return model


def base_key(conf: TinyModelConf, task: Chain) -> str:
    """Content hash of everything the base weights depend on."""
    taught = {key: value for key, value in asdict(conf).items() if key != "experts_implementation"}
    settings = {**taught, "seconds_per_update": 0, "task": asdict(task), "mixture": MIXTURE, "slip": SLIP}
    return digest({**settings, "recipe": RECIPE, "torch": torch.__version__})


def _build(conf: TinyModelConf, task: Chain, folder: Path, progress: Progress) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(conf.seed)
        model = build_model(conf)
    fine_tune(model, conf, task, progress)
    save_tensors(model.state_dict(), folder / "model.safetensors")


def fine_tune(model: PreTrainedModel, conf: TinyModelConf, task: Chain, progress: Progress) -> None:
    """Imitate `sft_steps` batches of demonstrations, in place."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=conf.sft_lr, betas=(0.9, 0.999), weight_decay=0.01)
    for step in range(conf.sft_steps):
        for group in optimiser.param_groups:
            group["lr"] = conf.sft_lr * _schedule(step, conf.sft_steps)
        scores = score(model, demonstrations(conf, task, step), temperature=1.0, bucket=conf.sft_batch)
        (-scores.logp.mean()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        progress("teaching the base model", step + 1, conf.sft_steps)


def demonstrations(conf: TinyModelConf, task: Chain, step: int) -> list[Row]:
    """The batch of one fine-tuning step."""
    codec, rng = CharacterCodec(), stream(conf.seed, "demonstration", step)
    early = step < CURRICULUM_SHARE * conf.sft_steps
    rows = []
    for _ in range(conf.sft_batch):
        if early:
            digits = draw_digits(rng, 2, CURRICULUM_TERMS)
            text = worked(rng, digits, write=1.0, slip=0.0)
        else:
            digits = draw_digits(rng, task.min_terms, task.max_terms)
            text = draw_demonstration(rng, digits)
        prompt = codec.encode_prompt("+".join(map(str, digits)) + "=")
        rows.append(Row(prompt, np.array([*codec.encode(text), codec.EOS], np.int32)))
    return rows


def _schedule(step: int, steps: int) -> float:
    """Linear warm-up, then a cosine down to FINAL_LR of the peak."""
    if step < WARMUP:
        return (step + 1) / WARMUP
    done = (step - WARMUP) / max(1, steps - WARMUP)
    return FINAL_LR + (1 - FINAL_LR) * 0.5 * (1 + float(np.cos(np.pi * done)))
