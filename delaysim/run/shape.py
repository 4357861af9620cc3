"""How large a model is, from the numbers of its configuration. No torch: nothing is built or downloaded."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import try_to_load_from_cache

from delaysim.data import resolve_model_path
from delaysim.files import read_json
from delaysim.settings.models import ALL_LINEAR, PretrainedModelConf, ShapeConf, TinyModelConf, TinyMoeConf
from delaysim.tasks.chain import CHARACTERS

KNOWN = ("llama", "mistral", "qwen2", "qwen3", "qwen3_moe")
"""Families whose parameters `linears` and `parameters` count."""
CHECKED_HEADS, BIASED = ("qwen3", "qwen3_moe"), ("qwen2",)
"""Families that normalise each query and key head; that have biases on queries, keys and values."""


@dataclass(frozen=True)
class Shape:
    """A decoder-only transformer with gated feed-forward blocks (Llama, Qwen2, Qwen3, Qwen3-MoE)."""

    conf: ShapeConf

    @property
    def query(self) -> int:
        """Width of all query heads together."""
        return self.conf.heads * self.conf.head_dim

    @property
    def key(self) -> int:
        """Width of all key heads together; values have the same."""
        return self.conf.kv_heads * self.conf.head_dim

    @property
    def parameters(self) -> int:
        """Trainable numbers, tied ones once."""
        c = self.conf
        heads = 2 * c.head_dim if c.head_norms else 0
        biases = self.query + 2 * self.key if c.biases else 0
        experts = c.experts * (3 * c.expert_size + 1) * c.hidden  # the router has one row each
        linears = sum(i * o for i, o in self.linears.values())
        layer = linears + heads + biases + experts + 2 * c.hidden
        return c.layers * layer + c.hidden + c.vocabulary * c.hidden * (1 if c.tied else 2)

    @property
    def linears(self) -> dict[str, tuple[int, int]]:
        """Input and output width of a layer's linear maps by name; experts are tensors of their own."""
        c = self.conf
        attention = {
            "q_proj": (c.hidden, self.query), "k_proj": (c.hidden, self.key), "v_proj": (c.hidden, self.key),
            "o_proj": (self.query, c.hidden),
        }  # fmt: skip
        if c.experts:
            return attention
        wide = (c.hidden, c.intermediate)
        return attention | {"gate_proj": wide, "up_proj": wide, "down_proj": wide[::-1]}

    def adapters(self, rank: int, targets: list[str]) -> int:
        """Parameters of low-rank adapters beside these linear maps."""
        chosen = [io for name, io in self.linears.items() if targets == [ALL_LINEAR] or name in targets]
        return self.conf.layers * rank * sum(i + o for i, o in chosen)


def shape_of(model: TinyModelConf | PretrainedModelConf) -> Shape | None:
    """From the settings, or from the config.json of a model on this machine; None where neither says it."""
    if isinstance(model, TinyModelConf):
        return Shape(_tiny(model))
    if model.shape is not None:
        return Shape(model.shape)
    config = _config_file(model.path)
    return None if config is None else _from_config(read_json(config))


def _tiny(m: TinyModelConf) -> ShapeConf:
    experts = (m.experts, m.experts_per_token, m.expert_size) if isinstance(m, TinyMoeConf) else (0, 0, 0)
    sizes = (m.hidden_size, m.intermediate_size, m.layers, m.heads, m.kv_heads, m.head_dim)
    return ShapeConf(3 + len(CHARACTERS), *sizes, False, True, False, *experts)  # and <pad>, <bos>, <eos>


def _config_file(path: str) -> Path | None:
    place = resolve_model_path(path)
    found = try_to_load_from_cache(path, "config.json") if place is None else place / "config.json"
    return Path(found) if isinstance(found, (str, Path)) and Path(found).is_file() else None


def _from_config(config: Mapping[str, Any]) -> Shape | None:
    kind = config.get("model_type")
    if kind not in KNOWN:
        return None
    heads = config["num_attention_heads"]
    moe = kind == "qwen3_moe"
    return Shape(
        ShapeConf(
            vocabulary=config["vocab_size"],
            hidden=config["hidden_size"],
            intermediate=config["intermediate_size"],
            layers=config["num_hidden_layers"],
            heads=heads,
            kv_heads=config.get("num_key_value_heads") or heads,
            head_dim=config.get("head_dim") or config["hidden_size"] // heads,
            tied=config.get("tie_word_embeddings", False),
            head_norms=kind in CHECKED_HEADS,
            biases=kind in BIASED,
            experts=config.get("num_experts", config.get("num_local_experts", 0)) if moe else 0,
            experts_per_token=config["num_experts_per_tok"] if moe else 0,
            expert_size=config["moe_intermediate_size"] if moe else 0,
        )
    )
