"""Both ends of vLLM's weight transfer, for what vLLM has no backend of its own for: this process, and CPUs.

Backend `handover`: the engine takes the tensors as they are, in the process they live in. Backend `gloo`: they come
from another process over sockets, in the order and with the calls of vLLM's own `nccl` between two GPUs.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import torch
from transformers import PreTrainedModel
from vllm.distributed.utils import stateless_init_torch_distributed_process_group
from vllm.distributed.weight_transfer import WeightTransferEngineFactory, WeightTransferTrainerFactory
from vllm.distributed.weight_transfer.base import (
    ParamMeta,
    TrainerInitInfo,
    TrainerWeightTransferEngine,
    WeightSource,
    WeightTransferEngine,
    WeightTransferInitInfo,
    WeightTransferUpdateInfo,
)
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload

from delaysim.policy.published import published
from delaysim.settings.carrier import GLOO

HANDOVER = "handover"
LEARNER, ENGINE = 0, 1
"""Ranks."""


class Source(WeightSource):  # type: ignore[misc]
    """What is published of a model, anew in each pass."""

    def __init__(self, model: PreTrainedModel, untied: bool) -> None:
        self._model, self._untied = model, untied
        self._metadata = [ParamMeta(name, weight.dtype, tuple(weight.shape)) for name, weight in self]

    def metadata(self) -> list[ParamMeta]:
        return self._metadata

    def __iter__(self) -> Iterator[tuple[str, torch.Tensor]]:
        return published(self._model, self._untied)


@dataclass
class Nothing(WeightTransferInitInfo):  # type: ignore[misc]
    """There is nobody to meet."""


@dataclass
class Tensors(WeightTransferUpdateInfo):  # type: ignore[misc]
    """The weights themselves."""

    weights: Iterator[tuple[str, torch.Tensor]]


class Handover(WeightTransferEngine):  # type: ignore[misc]
    """The engine's end in the process of the weights: vLLM's layerwise reload."""

    init_info_cls: Any = Nothing
    update_info_cls: Any = Tensors

    def init_transfer_engine(self, init_info: Any) -> None:
        pass

    def start_weight_update(self) -> None:
        if self.device.type == "cpu":
            _forget_expert_kernels(self.model)
        initialize_layerwise_reload(self.model)

    def update_weights(self, update_info: dict[str, Any]) -> None:
        """Without vLLM's wait for an accelerator, which fails where there is none."""
        self.receive_weights(self.parse_update_info(update_info))

    def receive_weights(self, update_info: Any) -> None:
        self.model.load_weights(update_info.weights)

    def finish_weight_update(self) -> None:
        finalize_layerwise_reload(self.model, self.model_config)

    def shutdown(self) -> None:
        pass


@dataclass
class Meeting(WeightTransferInitInfo):  # type: ignore[misc]
    """Where the two processes meet."""

    master_address: str
    master_port: int


@dataclass
class Described(WeightTransferUpdateInfo):  # type: ignore[misc]
    """The weights that follow, as in vLLM's own backends."""

    names: list[str]
    dtype_names: list[str]
    shapes: list[list[int]]


class GlooReceiver(Handover):
    """The engine's end of the sockets."""

    init_info_cls = Meeting
    update_info_cls = Described

    def init_transfer_engine(self, init_info: Meeting) -> None:
        self._group = _join(init_info.master_address, init_info.master_port, ENGINE)

    def receive_weights(self, update_info: Described) -> None:
        described = zip(update_info.names, update_info.dtype_names, update_info.shapes, strict=True)
        self.model.load_weights((name, self._next(getattr(torch, kind), shape)) for name, kind, shape in described)

    def _next(self, dtype: torch.dtype, shape: list[int]) -> torch.Tensor:
        weight = torch.empty(shape, dtype=dtype)
        self._group.recv([weight], LEARNER, 0).wait()
        return weight.to(self.device)


@dataclass
class GlooInit(TrainerInitInfo):  # type: ignore[misc]
    """Where the engine is asked to come."""

    backend: ClassVar[str] = GLOO

    master_address: str
    master_port: int


class GlooSender(TrainerWeightTransferEngine):  # type: ignore[misc]
    """The learner's end of the sockets."""

    init_info_cls = GlooInit

    @classmethod
    def trainer_init(cls, init_info: GlooInit, *, client: Any, source: WeightSource | None = None) -> "GlooSender":
        made, place = cls(client=client, source=source), (init_info.master_address, init_info.master_port)
        with ThreadPoolExecutor(1) as other:
            joined = other.submit(client.init_weight_transfer_engine, asdict(Meeting(*place)))
            made._group = _join(*place, LEARNER)
            joined.result()
        return made

    def send_weights(self) -> None:
        meta = self.source.metadata()
        kinds = [str(m.dtype).removeprefix("torch.") for m in meta]
        described = Described([m.name for m in meta], kinds, [list(m.shape) for m in meta])
        self.client.start_weight_update()
        with ThreadPoolExecutor(1) as other:
            received = other.submit(self.client.update_weights, asdict(described))
            try:
                for _, weight in self.source:
                    self._group.send([weight.contiguous().cpu()], ENGINE, 0).wait()
            finally:
                received.result()  # an error over there explains the one here
        self.client.finish_weight_update()


def _join(address: str, port: int, rank: int) -> Any:
    return stateless_init_torch_distributed_process_group(address, port, rank, 2, "gloo")


def _forget_expert_kernels(model: Any) -> None:
    """So that a CPU engine repacks the experts it is given; with a kernel in place it takes them as packed already."""
    for module in model.modules():
        method: Any = getattr(module, "quant_method", None)
        if hasattr(method, "moe_kernel"):
            method.moe_kernel = None


WeightTransferEngineFactory.register_engine(HANDOVER, Handover)
WeightTransferEngineFactory.register_engine(GLOO, GlooReceiver)
WeightTransferTrainerFactory.register_engine(GLOO, GlooSender)
