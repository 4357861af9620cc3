"""CPU seconds of the whole trace command, and of both engines of the clock beside the heaps that are their limit.

python benchmarks/clock.py [--rounds 3]        the fast engine needs numba: pip install 'delaysim[fast]'
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from heapq import heapify, heapreplace
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from simpy import Environment

from delaysim.clock import Law
from delaysim.clock.events import COMPLETION, Occurrence
from delaysim.clock.fast import durations, run_fast
from delaysim.clock.lengths import KeyedLengths, Lognormal
from delaysim.clock.trace import run_alone

IntArray = NDArray[np.int64]
DRAWN = Lognormal(600, 0.7, 0.5, 3072)
SIZES = [(10_000, 1260), (100_000, 128), (100_000, 1260), (100_000, 10_000), (1_000_000, 1260)]
"""Updates, groups in flight."""
TOO_LONG = 1_000_000
"""From so many updates on only what is compiled is run."""


def law(updates: int, in_flight: int) -> Law:
    """The coupled law whose C_gen balances generation and learner at so many groups in flight."""
    return Law(updates, 8, in_flight // 8 - 1, 85.0 * in_flight / 1260, 1.0, 1.0, 600.0)


def cpu(run: Callable[[], Any]) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    run()
    return time.process_time() - start


def simpy_queue(events: int, in_flight: int) -> None:
    """As many events as a run has, which do nothing."""
    env = Environment(0)

    def again(event: Occurrence) -> None:
        env.schedule(Occurrence(again), COMPLETION, 1 + hash(event) % 1000)

    for _ in range(in_flight):
        env.schedule(Occurrence(again), COMPLETION, 1)
    for _ in range(events):
        env.step()


def python_heap(ticks: list[int], in_flight: int) -> list[int]:
    """The order of completions where each completion launches the next group: one heapreplace and one append each."""
    heap = [(due, group) for group, due in enumerate(ticks[:in_flight])]
    heapify(heap)
    order: list[int] = []
    for group, duration in enumerate(ticks[in_flight:], in_flight):
        due, done = heap[0]
        order.append(done)
        heapreplace(heap, (due + duration, group))
    return order


@njit(cache=True)
def compiled_heap(tick: IntArray, group: IntArray, ticks: IntArray, order: IntArray) -> None:
    """The same in arrays; the hole at the top sinks to a leaf and the new entry rises from there."""
    size = len(tick)
    root, one, end = np.uint64(0), np.uint64(1), np.uint64(size)  # unsigned: as in compiled.py
    for step in range(len(order)):
        order[step] = group[root]
        due, new = tick[root] + ticks[size + step], size + step
        place, below = root, one
        while below + one < end:
            left, right = tick[below], tick[below + one]
            smaller = right < left
            if right == left:
                smaller = group[below + one] < group[below]
            below += np.uint64(smaller)
            tick[place], group[place] = tick[below], group[below]
            place, below = below, below + below + one
        if below < end:
            tick[place], group[place] = tick[below], group[below]
            place = below
        while place > root:
            above = (place - one) >> one
            if tick[above] < due or (tick[above] == due and group[above] < new):
                break
            tick[place], group[place] = tick[above], group[above]
            place = above
        tick[place], group[place] = due, new


def row(updates: int, in_flight: int) -> dict[str, float]:
    """CPU seconds at one size, with the lengths drawn and the compiled code warm."""
    shape = law(updates, in_flight)
    groups = (updates + shape.look_ahead) * 8
    lengths = KeyedLengths(DRAWN, 8, seed=0)
    ticks = durations(shape, np.array(lengths.longest(range(groups))))
    first, order = np.sort(ticks[:in_flight]), np.empty(groups - in_flight, np.int64)
    found = {
        "fast": cpu(lambda: run_fast(shape, lengths)),
        "compiled heap": cpu(lambda: compiled_heap(first, np.arange(in_flight), ticks, order)),
    }
    if updates < TOO_LONG:
        listed = ticks.tolist()
        found["Python heap"] = cpu(lambda: python_heap(listed, in_flight))
        found["SimPy"] = cpu(lambda: run_alone(shape, lengths))
        found["SimPy's queue"] = cpu(lambda: simpy_queue(groups + 3 * updates, in_flight))
    return found


def table(rounds: int) -> None:
    """One line per size: the least of the rounds, which is the least disturbed."""
    columns = ("SimPy", "SimPy's queue", "Python heap", "fast", "compiled heap")
    row(100, 128)
    print("CPU-seconds, the least of the rounds")
    print(f"{'updates':>9} {'in flight':>9}", *(f"{name:>13}" for name in columns))
    for updates, in_flight in SIZES:
        runs = [row(updates, in_flight) for _ in range(rounds)]
        cells = [min(run[name] for run in runs) if name in runs[0] else None for name in columns]
        shown = [f"{'-':>13}" if cell is None else f"{cell:>13.3f}" for cell in cells]
        print(f"{updates:>9,} {in_flight:>9,}", *shown, flush=True)


def command(engine: str, updates: int = 100_000) -> tuple[float, float]:
    """CPU seconds and peak memory [MB] of `delaysim mode=trace`, as a process."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["mode=trace", "+suite=simulated_async", f"updates={updates}", f"runs_dir={folder}", f"clock={engine}"]
        process = subprocess.Popen([sys.executable, "-m", "delaysim", *words], stdout=subprocess.DEVNULL)
        _, _, used = os.wait4(process.pid, 0)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1000


def main() -> None:
    """The command with either engine in turn, before this process grows, then the table of sizes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    for _ in range(rounds):
        for engine in ("simpy", "fast"):
            whole, memory = command(engine)
            print(f"whole command, 100,000 updates, clock={engine}: {whole:.2f} CPU-s, {memory:.0f} MB", flush=True)
    table(rounds)


if __name__ == "__main__":
    main()
