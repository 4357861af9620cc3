"""Killable worker processes for answers that need algebra.

A worker is a fresh interpreter (`python -m delaysim.grading.worker`), never a fork: it holds no lock and no device of
its parent, and needs no `__main__` guard. Requests may come from any thread; no signal handler or alarm is touched.
"""

import os
import queue
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

TIMED_OUT = "timed out"
"""The reply where Math-Verify's own time limit ended a request."""
START_S = 120.0
"""How long a worker may take to import its libraries [s]; no request's time."""
ATTEMPTS = 2


class WorkerTimeoutError(Exception):
    """A request ran past its deadline; its worker was ended."""


class WorkerDiedError(Exception):
    """Two workers died over one request."""


class Worker:
    """One process and its two pipes; started by the first request, replaced after its death."""

    def __init__(self, deadline_s: float) -> None:
        self.deadline_s = deadline_s
        self.process: subprocess.Popen[bytes] | None = None
        self.pipes: tuple[Connection, Connection] | None = None

    def ask(self, job: str, request: tuple[Any, ...]) -> Any:
        """The reply. Raises WorkerTimeoutError past the deadline, which starts with the work, or WorkerDiedError."""
        for _ in range(ATTEMPTS):
            try:
                with self._whole():
                    return self._asked(job, request)
            except (EOFError, OSError):
                continue
        raise WorkerDiedError(job)

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """A request that does not end as it should leaves no worker behind, KeyboardInterrupt included."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _asked(self, job: str, request: tuple[Any, ...]) -> Any:
        source, sink = self._started()
        sink.send((job, request))
        if not source.poll(self.deadline_s):
            raise WorkerTimeoutError(job)
        return source.recv()

    def _started(self) -> tuple[Connection, Connection]:
        if self.pipes is None:
            theirs_in, ours_out = os.pipe()
            ours_in, theirs_out = os.pipe()
            self.pipes = Connection(ours_in, writable=False), Connection(ours_out, readable=False)
            self.process = _spawn(theirs_in, theirs_out, self.deadline_s)
            if not self.pipes[0].poll(START_S):
                raise OSError("a worker did not start")
            self.pipes[0].recv()
        return self.pipes

    def close(self) -> None:
        """End the process, if there is one, and wait for its end."""
        process, pipes = self.process, self.pipes
        self.process = self.pipes = None
        if process is not None:
            process.kill()
            process.wait()
        for pipe in pipes or ():
            pipe.close()


def _spawn(source: int, sink: int, deadline_s: float) -> subprocess.Popen[bytes]:
    """Start a worker; nothing in the current directory is imported (-P)."""
    seconds = int(deadline_s) + 2
    path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "delaysim.grading.worker", str(source), str(sink), str(seconds)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(source, sink),
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        )
    finally:
        os.close(source)
        os.close(sink)


class Pool:
    """Workers that take requests from any thread; each is started when one is first needed."""

    def __init__(self, workers: int, deadline_s: float) -> None:
        if workers < 1:
            raise ValueError(f"workers={workers}: give 1 or more")
        self.all = [Worker(deadline_s) for _ in range(workers)]
        self.idle: queue.LifoQueue[Worker] = queue.LifoQueue()
        for worker in reversed(self.all):
            self.idle.put(worker)
        self.owner = os.getpid()
        self.close = weakref.finalize(self, _close, self.all, self.owner)

    def ask(self, job: str, *request: Any) -> Any:
        """The reply to a request. Raises WorkerTimeoutError or WorkerDiedError."""
        if os.getpid() != self.owner:
            raise RuntimeError("this Grader belongs to another process: make one in each process")
        if not self.close.alive:
            raise RuntimeError("this Grader is closed")
        worker = self.idle.get()
        try:
            reply = worker.ask(job, request)
        finally:
            self.idle.put(worker)
        if reply == TIMED_OUT:
            raise WorkerTimeoutError(job)
        return reply

    def pids(self) -> list[int]:
        """The worker processes that run."""
        return [worker.process.pid for worker in self.all if worker.process is not None]


def _close(workers: list[Worker], owner: int) -> None:
    if os.getpid() == owner:
        for worker in workers:
            worker.close()


def now_ms() -> float:
    """A clock for durations [ms]."""
    return time.perf_counter() * 1000
