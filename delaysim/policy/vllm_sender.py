"""The learner's side of a vLLM engine in another process: vLLM's sender here, its calls made over there."""

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import nullcontext
from importlib import import_module
from threading import Thread
from typing import Any

import torch
from transformers import PreTrainedModel

from delaysim.errors import SamplerFailed, UserError
from delaysim.policy.vllm_engine import import_vllm, reason, silent, untied_on
from delaysim.settings.carrier import NCCL

HERE = "127.0.0.1"
LOOKED_AFTER_S, LAST_WORDS_S = 0.5, 5.0
"""How often a sender is looked after, and how long it has to say what went wrong once the engine is gone [s]."""


class Client:
    """The calls of vLLM's weight transfer, each told to the process of the engine with `tell(call, *arguments)`."""

    def __init__(self, tell: Callable[..., Any]) -> None:
        self._tell, self.version = tell, ""

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        self._tell("init_weight_transfer_engine", {"init_info": init_info})

    def start_weight_update(self) -> None:
        self._tell("start_weight_update")

    def update_weights(self, update_info: Any) -> None:
        self._tell("update_weights", {"update_info": update_info})

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        """VLLM's senders name no version; every update has one here."""
        self._tell("finish_weight_update", weight_version or self.version)


class Sender:
    """Sends the learner's weights. Raises SamplerFailed where the engine's process ends, whatever vLLM waits for."""

    def __init__(
        self, learner: PreTrainedModel, carrier: str, device: str, tell: Callable[..., Any], alive: Callable[[], bool]
    ) -> None:
        import_vllm()
        with silent():
            import_module("delaysim.policy.vllm_transfer")
        self._client, self._alive, self._device = Client(tell), alive, learner.device
        self._trainer = self._watched(lambda: _trainer(learner, carrier, device, self._client))

    def send(self, version: int) -> None:
        """Start, update, finish."""
        self._client.version = str(version)
        self._watched(self._trainer.send_weights)

    def _watched(self, work: Callable[[], Any]) -> Any:
        """In a thread: NCCL waits for ever for an engine that has died."""
        done: Future[Any] = Future()
        thread = Thread(target=_into, args=(done, work, self._device), daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(LOOKED_AFTER_S)
            if not self._alive():
                thread.join(LAST_WORDS_S)
                break
        if not done.done():
            raise SamplerFailed("the sampler's process ended while it was given weights")
        return done.result()


def _trainer(learner: PreTrainedModel, carrier: str, device: str, client: Client) -> Any:
    from vllm.distributed.weight_transfer import WeightTransferTrainerFactory
    from vllm.utils.network_utils import get_open_port

    from delaysim.policy.vllm_transfer import GlooInit, Source

    info: Any = GlooInit(HERE, get_open_port(), rank=0)
    if carrier == NCCL:
        from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerInitInfo

        info = NCCLTrainerInitInfo(HERE, info.master_port, world_size=2, rank=0)
    source = Source(learner, untied_on(device))
    return WeightTransferTrainerFactory.trainer_init(info, client=client, source=source)


def _into(done: "Future[Any]", work: Callable[[], Any], device: torch.device) -> None:
    """Whatever the work raises, as one line."""
    try:
        with torch.cuda.device(device) if device.type == "cuda" else nullcontext():  # of this thread
            done.set_result(work())
    except UserError as error:
        done.set_exception(error)
    except Exception as error:
        failed = SamplerFailed(f"the weights could not be sent: {type(error).__name__}: {reason(error)}")
        failed.__cause__ = error
        done.set_exception(failed)
