"""A sampler in a process of its own, on a device of its own, so that responses are drawn while the learner trains.

The two processes share one copy of the weights in main memory. A publish writes the learner's weights there once every
draw asked for before it is answered, and the other process takes them over before it draws again; so a draw always has
the weights published last when it was asked for, and the responses are those of a sampler in the learner's process.
"""

import copy
import signal
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import torch
import torch.multiprocessing
from transformers import PreTrainedModel

from delaysim.errors import SamplerFailed, UserError
from delaysim.policy.codec import Codec
from delaysim.policy.model import Policy, with_sampler
from delaysim.policy.rollout import Ids, Response
from delaysim.policy.sample import Decoding
from delaysim.policy.sampler import Answer, Draw

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


class Reply(NamedTuple):
    """What the other process says of one request."""

    responses: list[Response]
    gap: float | None
    busy_s: float
    """Wall time the request took there."""


class RemoteSampler:
    """Draws in another process under the weights published last."""

    elsewhere = True
    gap: float | None = None

    def __init__(self, learner: PreTrainedModel, seat: Seat) -> None:
        self._learner = learner
        self._shared = copy.deepcopy(learner).cpu()  # requires_grad as in the learner: torch picks its kernels by it
        self._answered: deque[list[Response]] = deque()
        self._asked = self._taken = 0
        self._busy_s = 0.0
        context = torch.multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([PRELOAD])
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._shared.share_memory(), seat), daemon=True)
        self._process.start()
        theirs.close()
        self._receive()  # it has built its sampler, or says why not

    def start(self, prompts: Sequence[Ids], repeat: int, decoding: Decoding, draw: Draw | None) -> Answer:
        self._send(("sample", prompts, repeat, decoding, draw))
        number, self._asked = self._asked, self._asked + 1
        return lambda: self._take(number)

    def sample(self, prompts: Sequence[Ids], repeat: int, decoding: Decoding, draw: Draw | None) -> list[Response]:
        return self.start(prompts, repeat, decoding, draw)()

    def rest(self) -> None:
        """The learner has its own device."""

    @torch.no_grad()
    def publish(self, version: int) -> None:
        while self._taken + len(self._answered) < self._asked:
            self._answered.append(self._receive().responses)
        for mine, theirs in zip(self._shared.parameters(), self._learner.parameters(), strict=True):
            mine.copy_(theirs)
        self._send(("publish", version))
        self.gap = self._receive().gap

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

    def _take(self, number: int) -> list[Response]:
        if number != self._taken:
            raise ValueError(f"answer {number} is asked for before answer {self._taken}")
        self._taken += 1
        return self._answered.popleft() if self._answered else self._receive().responses

    def _send(self, request: tuple[Any, ...]) -> None:
        try:
            self._connection.send(request)
        except OSError as error:
            raise self._death() from error

    def _receive(self) -> Reply:
        try:
            answer = self._connection.recv()
        except (EOFError, OSError) as error:
            raise self._death() from error
        if isinstance(answer, Exception):
            raise answer
        self._busy_s += answer.busy_s
        return answer  # type: ignore[no-any-return]

    def _death(self) -> SamplerFailed:
        self._process.join(CLOSING_S)
        return SamplerFailed(f"the sampler's process ended with code {self._process.exitcode}")


# In the other process.


def _serve(connection: Connection, shared: PreTrainedModel, seat: Seat) -> None:
    """Answer requests until the learner's process closes the connection or ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl-C is the learner's to handle
    try:
        torch.set_num_threads(seat.threads)
        own: PreTrainedModel = copy.deepcopy(shared)
        own.to(torch.device(seat.device))  # type: ignore[arg-type]
        sampler = with_sampler(Policy(own, seat.codec), seat.conf).sampler
        connection.send(Reply([], None, 0.0))
        while (request := connection.recv()) is not None:
            connection.send(_answer(sampler, own, shared, request))
        sampler.close()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the learner's process is gone
    except Exception as error:
        kept = error if isinstance(error, UserError) else SamplerFailed(f"{type(error).__name__}: {error}")
        with suppress(OSError):
            connection.send(kept)


@torch.no_grad()
def _answer(sampler: Any, own: PreTrainedModel, shared: PreTrainedModel, request: tuple[Any, ...]) -> Reply:
    start = time.perf_counter()
    what, *arguments = request
    responses = []
    if what == "publish":
        for mine, theirs in zip(own.parameters(), shared.parameters(), strict=True):
            mine.copy_(theirs)
        sampler.publish(*arguments)
    else:
        responses = sampler.sample(*arguments)
    return Reply(responses, sampler.gap, time.perf_counter() - start if what == "sample" else 0.0)
