"""Any causal language model that transformers loads, checked to give sampler and learner the same distribution."""

from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, suppress
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from huggingface_hub import snapshot_download
from huggingface_hub.errors import LocalEntryNotFoundError
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel
from transformers.utils import logging

from delaysim.data import resolve_model_path
from delaysim.errors import UserError
from delaysim.files import digest, file_digest, read_json
from delaysim.policy.base import cached
from delaysim.policy.codec import TokenizerCodec
from delaysim.policy.experts import set_experts
from delaysim.policy.layout import Row
from delaysim.policy.lora import add_adapters
from delaysim.policy.model import Policy
from delaysim.policy.sample import Decoding
from delaysim.policy.sampler import Draw, HfSampler
from delaysim.policy.score import score
from delaysim.settings.models import PretrainedModelConf

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
HUB_FILES = ("*.json", "*.safetensors", "*.model", "*.txt", "*.jinja")
SAME_LOGITS = 1e-4
"""Largest difference of two ways to the logits, relative to the largest logit."""
SAME_LOGP = {torch.float32: 1e-2, torch.bfloat16: 0.5}
"""Largest difference between sampler and scorer [nats]: far above rounding, far below another distribution."""


def load_pretrained(conf: PretrainedModelConf) -> Policy:
    """The model of `model.path` with its tokenizer. Raises UserError when it cannot be loaded or is not supported."""
    dtype, place = _dtype(conf), resolve_model_path(conf.path)
    with _quiet(), _one_line(conf.path, place):
        folder = _hub_folder(conf.path) if place is None else _dequantised(place) if place.is_file() else place
        model, tokenizer = _load(folder, dtype)
        stop_ids = _stop_ids(model, tokenizer)
        if conf.experts_implementation is not None:
            set_experts(model, conf.experts_implementation)
        verify(model.eval().requires_grad_(True))
    if conf.lora.rank is not None:
        add_adapters(model, conf.lora, conf.lora.rank, conf.seed)
    return Policy(model, TokenizerCodec(tokenizer, stop_ids, _width(model), conf.template))


def verify(model: PreTrainedModel) -> None:
    """Refuse a model whose sampled and scored log-probabilities would differ. Raises UserError."""
    _verify_logits(model)
    _verify_sampler(model)


# Loading.


def _load(folder: Path, dtype: torch.dtype, **source: Any) -> tuple[PreTrainedModel, Any]:
    source |= {"trust_remote_code": False, "local_files_only": True}
    quantised = {} if "gguf_file" not in source else _dequantise()
    load: Any = AutoModelForCausalLM.from_pretrained
    model, info = load(folder, dtype=dtype, output_loading_info=True, **source, **quantised)
    if lacking := sorted(info["missing_keys"]):
        raise UserError(f"the weights lack {len(lacking)} tensors, {lacking[0]} first")
    return model, AutoTokenizer.from_pretrained(folder, **source)


def _dequantise() -> dict[str, Any]:
    """From transformers 5.17 on, without this a GGUF model counts as quantised and cannot be trained."""
    config = getattr(transformers, "GgufConfig", None)
    return {} if config is None else {"quantization_config": config(dequantize=True)}


def _dequantised(file: Path) -> Path:
    """A .gguf file as safetensors in the cache: written once, it loads in a tenth of the time."""
    if file.suffix != ".gguf":
        raise UserError("it is a file, and not a .gguf one")
    key = digest({"gguf": file_digest(file), "transformers": transformers.__version__})

    def build(folder: Path) -> None:
        with redirect_stderr(StringIO()):  # a bar that transformers cannot switch off
            for part in _load(file.parent, torch.float32, gguf_file=file.name):
                part.save_pretrained(folder)

    return cached("model", key, build)


def _hub_folder(hub_id: str) -> Path:
    """The snapshot of a hub id: the one on this machine where it is whole, else downloaded."""
    with suppress(LocalEntryNotFoundError):
        folder = Path(snapshot_download(hub_id, local_files_only=True))
        if _is_whole(folder):
            return folder
    return Path(snapshot_download(hub_id, allow_patterns=list(HUB_FILES), ignore_patterns=["*/*"]))


def _is_whole(folder: Path) -> bool:
    index = folder / "model.safetensors.index.json"
    shards = set(read_json(index)["weight_map"].values()) if index.exists() else {"model.safetensors"}
    return all((folder / name).exists() for name in {"config.json", "tokenizer_config.json", *shards})


def _dtype(conf: PretrainedModelConf) -> torch.dtype:
    if conf.dtype not in DTYPES:
        raise UserError(f"model.dtype={conf.dtype}: write one of {', '.join(DTYPES)}")
    return DTYPES[conf.dtype]


def _stop_ids(model: PreTrainedModel, tokenizer: Any) -> list[int]:
    named = getattr(model.generation_config, "eos_token_id", None)
    ids = [*(named if isinstance(named, list) else [named]), tokenizer.eos_token_id]
    stop = sorted({int(i) for i in ids if i is not None})
    if not stop:
        raise UserError("neither the model nor its tokenizer names a token that ends a response (eos_token_id)")
    return stop


# What is said when it fails.


@contextmanager
def _one_line(path: str, place: Path | None) -> Iterator[None]:
    """Whatever goes wrong becomes one line: transformers raises all kinds of errors, some over many lines."""
    try:
        yield
    except Exception as error:
        instead = "" if isinstance(error, UserError) else f"; {_instead(path, place)}"
        raise UserError(f"model.path={path} cannot be loaded: {_reason(error)}{instead}") from error


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".:") if lines else type(error).__name__


def _instead(path: str, place: Path | None) -> str:
    if place is None:
        return f"check the id, or run `hf download {path}` where there is a network, or give a local directory"
    if place.is_file():
        return "reading .gguf files needs `pip install 'delaysim[gguf]'`, and an architecture transformers converts"
    return "give a directory with config.json, safetensors weights and a tokenizer"


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the bars and tables that transformers prints while it loads."""
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


# Whether what is sampled is what is scored.


def _width(model: PreTrainedModel) -> int:
    return int(model.get_output_embeddings().weight.shape[0])


def _kind(model: PreTrainedModel) -> str:
    return str(model.config.model_type)


@torch.no_grad()
def _verify_logits(model: PreTrainedModel) -> None:
    """The scorer applies the head to the decoder; a model that does more to its logits would be scored wrongly."""
    ids = torch.arange(1, 9)[None] % model.config.get_text_config().vocab_size
    logits = model(input_ids=ids, use_cache=False).logits
    head = model.get_output_embeddings()
    if head is not None:
        plain = head(model.get_decoder()(input_ids=ids, use_cache=False).last_hidden_state)
        if torch.allclose(plain, logits, rtol=0, atol=SAME_LOGITS * float(logits.abs().max())):
            return
    raise UserError(f"a model of type {_kind(model)} post-processes its logits and is not supported")


def _verify_sampler(model: PreTrainedModel) -> None:
    """Two responses to each of two prompts of unequal length: padded, cached sampling against scoring them packed."""
    prompts = [np.arange(1, 1 + n, dtype=np.int32) % _width(model) for n in (7, 2)]
    sampler, draw = HfSampler(model, _width(model)), Draw(0, "verify", [(i,) for i in range(4)])
    try:
        responses = sampler.sample(prompts, 2, Decoding(3, 1.0, frozenset()), draw)
        rows = [Row(prompts[i // 2], response.tokens) for i, response in enumerate(responses)]
        with torch.no_grad():
            scores = score(model, rows, temperature=1.0, bucket=len(rows), pack=64)
    except Exception as error:
        raise UserError(f"a model of type {_kind(model)} does not run in the sampler: {_reason(error)}") from error
    sampled = torch.from_numpy(np.stack([response.logp for response in responses]))
    gap = float((scores.padded(len(rows), scores.logp) - sampled).abs().max())
    if not gap < SAME_LOGP[model.dtype]:
        raise UserError(f"a model of type {_kind(model)} samples and scores differently ({gap:.2g} nats)")
