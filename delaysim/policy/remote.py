"""A sampler in a process of its own, on a device of its own, so that responses are drawn while the learner trains.

The two processes share one copy of the weights in main memory. A publish writes the learner's weights there once every
draw asked for before it is answered, and the other process takes them over before it draws again; so a draw always has
the weights published last when it was asked for, and the responses are those of a sampler in the learner's process.
Where publishes do not wait, a draw has the newest weights published when it begins, and its answer says which. A vLLM
engine over there gets its weights by a carrier of its own (vllm_sender.py).
"""

import copy
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

import torch
import torch.multiprocessing
from transformers import PreTrainedModel

from delaysim.errors import SamplerFailed, UserError
from delaysim.policy.codec import Codec
from delaysim.policy.layout import Row
from delaysim.policy.model import Policy, with_sampler
from delaysim.policy.rescore import Rescored, recomputed
from delaysim.policy.rollout import Ids, Response
from delaysim.policy.sample import Decoding
from delaysim.policy.sampler import Draw, Sampler

PRELOAD = "delaysim.run.preload"
CLOSING_S = 10.0
"""How long the other process may take to end when asked [wall seconds]."""


@dataclass(frozen=True)
class Seat:
    """What the other process builds its sampler from."""

    codec: Codec
    conf: Any
    """The group `sampler` of the configuration."""
    device: str
    threads: int
    recompute: Callable[[PreTrainedModel, Sequence[Row]], list[Rescored]] | None = None
    """Gives responses the learner's log-probabilities as well, by the weights they were drawn with."""
    waits: bool = True
    """Whether a publish waits for what is under way; False in the suite `measured`."""
    carrier: str | None = None
    """Brings weights to an engine over there (delaysim/settings/carrier.py)."""
    routes: bool = False
    """Whether anybody asks for the experts it uses."""


class Shared(NamedTuple):
    """What both processes see."""

    model: PreTrainedModel
    """Its weights in main memory."""
    offered: Any
    """Version of those weights where publishes do not wait, else -1."""
    lock: Any
    """Held by whoever copies them."""


class Reply(NamedTuple):
    """What the other process says of one request."""

    responses: list[Response]
    version: int
    """Of the weights they were drawn with."""
    start: float
    """On the machine's monotonic clock [seconds]."""
    end: float
    gap: float | None
    """As in Sampler."""


@dataclass(frozen=True)
class Question:
    """Asked of a sampler elsewhere; called, it waits for the responses."""

    sampler: "RemoteSampler"
    number: int

    def __call__(self) -> list[Response]:
        return self.reply().responses

    def reply(self) -> Reply:
        """Wait for it, once. Raises SamplerFailed."""
        return self.sampler.reply_to(self.number)

    @property
    def answered(self) -> bool:
        """Whether it is there."""
        return self.sampler.has_answered(self.number)


class RemoteSampler:
    """Draws in another process under the weights published last."""

    elsewhere = True
    gap: float | None = None

    def __init__(self, learner: PreTrainedModel, seat: Seat) -> None:
        self._learner, self._waits = learner, seat.waits
        self._replies: dict[int, Reply] = {}
        self._asked, self._arrived, self._busy_s = 1, 0, 0.0
        context = torch.multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([PRELOAD])
        model = copy.deepcopy(learner).cpu()  # requires_grad as in the learner: torch picks its kernels by it
        self._shared = Shared(model.share_memory(), context.Value("q", -1), context.Lock())
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._shared, seat), daemon=True)
        self._process.start()
        theirs.close()
        self.reply_to(0)  # it has built its sampler, or says why not
        self._sender = None if seat.carrier is None else self._open(seat.carrier, seat.device)
        if self._sender is not None:
            self.publish(0)

    def start(self, prompts: Sequence[Ids], repeat: int, decoding: Decoding, draw: Draw | None) -> Question:
        """Ask for responses to train on, with the learner's log-probabilities where the seat gives them."""
        return self._ask("draw", prompts, repeat, decoding, draw)

    def sample(self, prompts: Sequence[Ids], repeat: int, decoding: Decoding, draw: Draw | None) -> list[Response]:
        return self._ask("sample", prompts, repeat, decoding, draw)()

    def rest(self) -> None:
        """The learner has its own device."""

    def publish(self, version: int) -> None:
        if not self._waits:
            with self._shared.lock:
                _take_over(self._shared.model, self._learner)
                self._shared.offered.value = version
            return
        while self._arrived < self._asked:
            self._receive()
        _take_over(self._shared.model, self._learner)
        if self._sender is not None:
            self._sender.send(version)
        self._ask("publish", version).reply()

    def lap(self) -> float | None:
        spent, self._busy_s = self._busy_s, 0.0
        return spent

    def close(self) -> None:
        with suppress(OSError):
            self._connection.send(None)
        self._process.join(CLOSING_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._connection.close()

    def reply_to(self, number: int) -> Reply:
        """Wait for the reply to a request."""
        while number not in self._replies:
            self._receive()
        return self._replies.pop(number)

    def has_answered(self, number: int) -> bool:
        """Whether the reply to a request is there."""
        while self._connection.poll():
            self._receive()
        return number in self._replies

    def _open(self, carrier: str, device: str) -> Any:
        """What sends weights to an engine over there."""
        from delaysim.policy.vllm_sender import Sender

        def tell(*call: Any) -> None:
            self._ask("control", *call).reply()

        return Sender(self._learner, carrier, device, tell, self._process.is_alive)

    def _ask(self, *request: Any) -> Question:
        try:
            self._connection.send(request)
        except OSError as error:
            raise self._death() from error
        self._asked += 1
        return Question(self, self._asked - 1)

    def _receive(self) -> None:
        try:
            reply = self._connection.recv()
        except (EOFError, OSError) as error:
            raise self._death() from error
        if isinstance(reply, Exception):
            raise reply
        self.gap = reply.gap
        self._busy_s += reply.end - reply.start
        self._replies[self._arrived] = reply
        self._arrived += 1

    def _death(self) -> SamplerFailed:
        self._process.join(CLOSING_S)
        return SamplerFailed(f"the sampler's process ended with code {self._process.exitcode}")


# In the other process.


def _serve(connection: Connection, shared: Shared, seat: Seat) -> None:
    """Answer requests until the learner's process says that it is enough, or ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl-C is the learner's to handle
    requests: SimpleQueue[Any] = SimpleQueue()
    Thread(target=_listen, args=(connection, requests), daemon=True).start()
    try:
        torch.set_num_threads(seat.threads)
        desk = _Desk(shared, seat)
        connection.send(desk.reply([]))
        while (request := requests.get()) is not None:
            connection.send(desk.answer(*request))
        desk.sampler.close()
    except Exception as error:
        kept = error if isinstance(error, UserError) else SamplerFailed(f"{type(error).__name__}: {error}")
        with suppress(OSError):
            connection.send(kept)


def _listen(connection: Connection, requests: "SimpleQueue[Any]") -> None:
    """Take requests in at once, so that the learner never waits to ask; end with its process, busy or not."""
    try:
        while True:
            requests.put(connection.recv())
    except (EOFError, OSError):
        os._exit(1)


class _Desk:
    """The sampler over there, with a copy of the weights on its device."""

    def __init__(self, shared: Shared, seat: Seat) -> None:
        self._shared, self._recompute, self._version = shared, seat.recompute, 0
        self._own: PreTrainedModel = copy.deepcopy(shared.model)
        self._own.to(torch.device(seat.device))  # type: ignore[arg-type]
        own = with_sampler(Policy(self._own, seat.codec), seat.conf, seat.carrier, seat.routes)
        self.sampler: Sampler = own.sampler

    def answer(self, what: str, *arguments: Any) -> Reply:
        if what == "publish":
            self._publish(*arguments)
            return self.reply([])
        if what == "control":
            self.sampler.control(*arguments)  # type: ignore[attr-defined]
            return self.reply([])
        self._catch_up()
        start = time.perf_counter()
        return self.reply(getattr(self, f"_{what}")(*arguments), start)

    def reply(self, responses: list[Response], start: float | None = None) -> Reply:
        end = time.perf_counter()
        return Reply(responses, self._version, end if start is None else start, end, self.sampler.gap)

    def _catch_up(self) -> None:
        """Take over weights that were offered meanwhile."""
        with self._shared.lock:
            version = int(self._shared.offered.value)
            if version > self._version:
                self._publish(version)

    def _publish(self, version: int) -> None:
        _take_over(self._own, self._shared.model)
        self.sampler.publish(version)
        self._version = version

    def _sample(self, prompts: Sequence[Ids], repeat: int, *how: Any) -> list[Response]:
        return self.sampler.sample(prompts, repeat, *how)

    def _draw(self, prompts: Sequence[Ids], repeat: int, *how: Any) -> list[Response]:
        responses = self._sample(prompts, repeat, *how)
        if self._recompute is None:
            return responses
        return recomputed(prompts, responses, partial(self._recompute, self._own))


@torch.no_grad()
def _take_over(mine: PreTrainedModel, theirs: PreTrainedModel) -> None:
    """The weights that training moves."""
    for to, by in zip(mine.parameters(), theirs.parameters(), strict=True):
        if by.requires_grad:
            to.copy_(by)
