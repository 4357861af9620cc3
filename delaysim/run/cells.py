"""The cells of a sweep: each in a process of its own, forked from a server that has torch loaded. No torch here."""

import multiprocessing
import os
import signal
import threading
import time
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from pathlib import Path

from delaysim.errors import UserError
from delaysim.run.runner import Ended, train
from delaysim.settings.config import Config

GRACE_S = 10.0
"""A cell whose command line is gone has this long to save its state [wall seconds]."""


def run_cell(cfg: Config, path: Path) -> Ended:
    """Run one cell and give its memory back. Raises UserError where it cannot start."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["delaysim.run.preload"])
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_cell, args=(replace(cfg, display="quiet"), path, sender))
    process.start()
    sender.close()
    try:
        answer = _answer(receiver)
        process.join()
    except KeyboardInterrupt:
        process.join()  # the terminal's Ctrl-C reached the cell too: it is saving its state
        raise
    if isinstance(answer, UserError):
        raise answer
    return answer or Ended(path, "failed", f"the cell's process ended with code {process.exitcode}: see {path}/run.log")


def _answer(receiver: Connection) -> "Ended | UserError | None":
    try:
        return receiver.recv()  # type: ignore[no-any-return]
    except EOFError:
        return None


def _cell(cfg: Config, path: Path, sender: Connection) -> None:
    from delaysim.run.progress import Display

    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        sender.send(train(cfg, path, Display("quiet")))
    except UserError as error:
        sender.send(error)


def _end_with_parent() -> None:
    """A forked cell's parent is the fork server: watch the process that asked for it instead."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(GRACE_S)
        os._exit(1)
