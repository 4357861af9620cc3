"""A worker process: answers requests that need algebra, one at a time, in its main thread. Started by `workers.py`.

It ends when its pipe closes, when its parent is gone, when it has used the processor for longer than any request may,
or when it runs out of memory.
"""

import os
import resource
import signal
import sys
import threading
import time
from multiprocessing.connection import Connection

MEMORY = 2 << 30
"""Address space at most [bytes]."""


def main(arguments: list[str]) -> None:
    """Serve until the pipe closes. `arguments`: read end, write end, processor seconds a request may take."""
    source, sink, seconds = Connection(int(arguments[0])), Connection(int(arguments[1])), int(arguments[2])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C reaches the whole group; the parent decides
    _silence()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()
    from math_verify.errors import TimeoutException

    from delaysim.grading.jobs import JOBS
    from delaysim.grading.workers import TIMED_OUT

    sink.send("ready")
    while True:
        try:
            job, request = source.recv()
        except (EOFError, OSError):
            return
        _allow(seconds)
        try:
            reply = JOBS[job](*request)
        except TimeoutException:
            reply = TIMED_OUT
        except MemoryError:
            os._exit(1)
        sink.send(reply)


def _silence() -> None:
    """What libraries print goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _allow(seconds: int) -> None:
    """The kernel ends a request that its parent no longer waits for."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = int(used.ru_utime + used.ru_stime) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))


if __name__ == "__main__":
    main(sys.argv[1:])
