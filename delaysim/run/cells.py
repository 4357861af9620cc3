"""The cells of a sweep: each in a process of its own, forked from a server that has torch loaded. No torch here."""

import multiprocessing
import multiprocessing.context
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from delaysim.errors import UserError
from delaysim.run.runner import Ended, train
from delaysim.settings.config import Config

GRACE_S = 10.0
"""A cell whose command line is gone has this long to save its state [wall seconds]."""
LOCK_WAIT_S = GRACE_S + 5.0
"""A cell waits so long for a run that another process holds: one started again elsewhere meets its dying self."""
LOOK_EVERY_S = 1.0
"""An interrupt that is no signal, as Ray's, is seen this often [wall seconds]."""
PLACE = ("CUDA_VISIBLE_DEVICES", "DELAYSIM_CACHE", "DELAYSIM_NODE")
"""Variables that a cell takes from the process that asks for it, not from the server it is forked from."""
BEFORE = "stopped before its first update"

Answer = Ended | UserError
"""How a cell ended, or why it could not start."""


@dataclass(frozen=True)
class Cell:
    """One configuration of a sweep and where its run belongs."""

    words: str
    """The settings that tell it from the other cells, as typed."""
    cfg: Config
    path: Path


class Started:
    """A cell under way."""

    def __init__(self, number: int, cell: Cell) -> None:
        context = _fork_server()
        self.number, self._cell, self._stopped = number, cell, False
        self.receiver, sender = context.Pipe(duplex=False)
        place = {name: os.environ.get(name) for name in PLACE}
        cfg = replace(cell.cfg, display="quiet")
        self._process = context.Process(target=_cell, args=(cfg, cell.path, place, _in_main(), sender))
        self._process.start()
        sender.close()

    def answer(self) -> Answer:
        """Wait for its end and give its memory back."""
        with self.receiver:
            try:
                answer: Answer | None = self.receiver.recv()
            except EOFError:
                answer = None
        self._process.join()
        if answer is not None:
            return answer
        if self._stopped:
            return Ended(self._cell.path, "interrupted", BEFORE)
        return Ended(self._cell.path, "failed", f"its process ended with code {self._process.exitcode}")

    def stop(self) -> None:
        """Ask it to save its state and end; asked again, to end at once."""
        self._stopped = True
        with suppress(ProcessLookupError):
            if self._process.pid is not None and self._process.is_alive():
                os.kill(self._process.pid, signal.SIGINT)


def _fork_server() -> multiprocessing.context.ForkServerContext:
    """Its children start as this process says it was started: joblib's workers name a way that Python does not know."""
    if multiprocessing.get_start_method() not in multiprocessing.get_all_start_methods():
        multiprocessing.set_start_method("forkserver", force=True)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["delaysim.run.preload"])
    return context


def run_cell(cfg: Config, path: Path) -> Ended:
    """Run one cell. Raises UserError where it cannot start."""
    answers: list[Answer] = []
    run_cells([Cell("", cfg, path)], 1, lambda _, answer: answers.append(answer))
    if isinstance(answers[0], UserError):
        raise answers[0]
    return answers[0]


def run_cells(cells: Sequence[Cell], jobs: int, tell: Callable[[int, Answer], None]) -> None:
    """Run cells, `jobs` of them at once, and tell of each as it ends.

    Raises KeyboardInterrupt after Ctrl-C, once every cell has saved its state and was told of.
    """
    waiting, running = deque(enumerate(cells)), list[Started]()
    with _interrupts(running) as interrupted:
        while running or (waiting and not interrupted):
            while waiting and len(running) < jobs and not interrupted:
                running.append(Started(*waiting.popleft()))
                if interrupted:  # while it started
                    running[-1].stop()
            for receiver in wait([started.receiver for started in running], LOOK_EVERY_S):
                (ended,) = (started for started in running if started.receiver is receiver)
                tell(ended.number, ended.answer())
                running.remove(ended)
    if interrupted:
        raise KeyboardInterrupt


@contextmanager
def _interrupts(running: Sequence[Started]) -> Iterator[list[int]]:
    """Pass Ctrl-C on to the running cells; yields the interrupts so far."""
    seen: list[int] = []

    def ask(number: int, _frame: Any) -> None:
        seen.append(number)
        for started in running:
            started.stop()

    if not _in_main():
        yield seen  # only the main thread is interrupted; the terminal tells the cells
        return
    before = signal.signal(signal.SIGINT, ask)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, before)


def _in_main() -> bool:
    return threading.current_thread() is threading.main_thread()


def _cell(cfg: Config, path: Path, place: dict[str, str | None], apart: bool, sender: Connection) -> None:
    from delaysim.run.progress import Display

    try:
        if apart:
            os.setsid()  # Ctrl-C reaches a cell once: from run_cells, not from the terminal too
        _move(place)
        threading.Thread(target=_end_with_parent, daemon=True).start()
        answer: Answer = train(cfg, path, Display("quiet"), LOCK_WAIT_S)
    except UserError as error:
        answer = error
    except KeyboardInterrupt:
        answer = Ended(path, "interrupted", BEFORE)
    sender.send(answer)


def _move(place: dict[str, str | None]) -> None:
    for name, value in place.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _end_with_parent() -> None:
    """A forked cell's parent is the fork server: watch the process that asked for it instead."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(GRACE_S)
        os._exit(1)
