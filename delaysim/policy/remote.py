"""A sampler in a process of its own, on a device of its own, so that responses are drawn while the learner trains.

The two processes share one copy of the weights in main memory. A publish writes the learner's weights there once every
draw asked for before it is answered, and the other process takes them over before it draws again; so a draw always has
the weights published last when it was asked for, and the responses are those of a sampler in the learner's process.
"""

import copy
import signal
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import torch
import torch.multiprocessing
from transformers import PreTrainedModel

from delaysim.errors import SamplerFailed, UserError
from delaysim.policy.codec import Codec
from delaysim.policy.model import Policy, with_sampler
from delaysim.policy.rollout import Ids, Logps, Response
from delaysim.policy.sample import Decoding
from delaysim.policy.sampler import Answer, Draw
from delaysim.policy.score import Row

PRELOAD = "delaysim.run.preload"
CLOSING_S = 10.0
"""How long the other process may take to end when asked [wall seconds]."""


Recompute = Callable[[PreTrainedModel, Sequence[Row]], list[Logps]]


@dataclass(frozen=True)
class Seat:
    """What the other process builds its sampler from."""

    codec: Codec
    conf: Any
    """The group `sampler` of the configuration."""
    device: str
    threads: int
    recompute: Recompute | None = None
    """Gives responses the learner's log-probabilities as well, by the weights they were drawn with."""


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
        """Ask for responses to train on, with the learner's log-probabilities where the seat gives them."""
        return self._ask("draw", prompts, repeat, decoding, draw)

    def sample(self, prompts: Sequence[Ids], repeat: int, decoding: Decoding, draw: Draw | None) -> list[Response]:
        return self._ask("sample", prompts, repeat, decoding, draw)()

    def _ask(self, *request: Any) -> Answer:
        self._send(request)
        number, self._asked = self._asked, self._asked + 1
        return lambda: self._take(number)

    def rest(self) -> None:
        """The learner has its own device."""

    @torch.no_grad()
    def publish(self, version: int) -> None:
        while self._taken + len(self._answered) < self._asked:
            self._answered.append(self._receive().responses)
        _take_over(self._shared, self._learner)
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
        desk = _Desk(shared, seat)
        connection.send(Reply([], None, 0.0))
        while (request := connection.recv()) is not None:
            connection.send(desk.answer(*request))
        desk.sampler.close()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the learner's process is gone
    except Exception as error:
        kept = error if isinstance(error, UserError) else SamplerFailed(f"{type(error).__name__}: {error}")
        with suppress(OSError):
            connection.send(kept)


class _Desk:
    """The sampler over there, with a copy of the weights on its device."""

    def __init__(self, shared: PreTrainedModel, seat: Seat) -> None:
        self._shared, self._recompute = shared, seat.recompute
        self._own: PreTrainedModel = copy.deepcopy(shared)
        self._own.to(torch.device(seat.device))  # type: ignore[arg-type]
        self.sampler = with_sampler(Policy(self._own, seat.codec), seat.conf).sampler

    def answer(self, what: str, *arguments: Any) -> Reply:
        start = time.perf_counter()
        responses: list[Response] = getattr(self, what)(*arguments)
        busy_s = 0.0 if what == "publish" else time.perf_counter() - start
        return Reply(responses, self.sampler.gap, busy_s)

    @torch.no_grad()
    def publish(self, version: int) -> list[Response]:
        _take_over(self._own, self._shared)
        self.sampler.publish(version)
        return []

    def sample(self, prompts: Sequence[Ids], repeat: int, *how: Any) -> list[Response]:
        return self.sampler.sample(prompts, repeat, *how)

    def draw(self, prompts: Sequence[Ids], repeat: int, *how: Any) -> list[Response]:
        responses = self.sample(prompts, repeat, *how)
        if self._recompute is None:
            return responses
        rows = [Row(prompts[i // repeat], response.tokens) for i, response in enumerate(responses)]
        logps = self._recompute(self._own, rows)
        return [replace(response, recomputed=logp) for response, logp in zip(responses, logps, strict=True)]


def _take_over(mine: PreTrainedModel, theirs: PreTrainedModel) -> None:
    """The weights that training moves."""
    for to, by in zip(mine.parameters(), theirs.parameters(), strict=True):
        if by.requires_grad:
            to.copy_(by)
