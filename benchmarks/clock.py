"""CPU seconds of the clock alone and of the whole trace command, beside the floor that SimPy's event queue sets.

python benchmarks/clock.py [--updates 100000]
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time

from simpy import Environment

from delaysim.clock import Law
from delaysim.clock.lengths import KeyedLengths, Lognormal
from delaysim.clock.loop import COMPLETION, Occurrence
from delaysim.clock.pilot import settle
from delaysim.clock.trace import run_alone


def clock(updates: int) -> tuple[float, int]:
    """CPU seconds of one run of the clock with its lengths already drawn, and the groups it launched."""
    drawn = Lognormal(600, 0.7, 0.5, 3072)
    law = settle(Law(updates, 8, 0, 85.0, 1.0, 1.0), KeyedLengths(drawn, 8, 0, "pilot_lengths").table(128), None, None)
    lengths = KeyedLengths(drawn, 8, seed=0)
    lengths.table((updates + law.look_ahead) * 8)
    start = time.process_time()
    run = run_alone(law, lengths)
    return time.process_time() - start, len(run.ledger)


def floor(events: int, in_flight: int = 1260) -> float:
    """CPU seconds SimPy needs to schedule and fire as many events that do nothing."""
    env = Environment(0)

    def again(event: Occurrence) -> None:
        env.schedule(Occurrence(again), COMPLETION, 1 + hash(event) % 1000)

    for _ in range(in_flight):
        env.schedule(Occurrence(again), COMPLETION, 1)
    start = time.process_time()
    for _ in range(events):
        env.step()
    return time.process_time() - start


def command(updates: int) -> tuple[float, float]:
    """CPU seconds and peak memory [MB] of `delaysim mode=trace`, as a process."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["mode=trace", "+suite=simulated_async", f"updates={updates}", f"runs_dir={folder}"]
        process = subprocess.Popen([sys.executable, "-m", "delaysim", *words], stdout=subprocess.DEVNULL)
        _, _, used = os.wait4(process.pid, 0)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1000


def main() -> None:
    """Three rounds, the two measured in turn with the floor between them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=100_000)
    updates = parser.parse_args().updates
    for _ in range(3):
        alone, groups = clock(updates)
        bare = floor(groups + 3 * updates)
        whole, memory = command(updates)
        print(
            f"clock alone {alone:.2f} CPU-s ({groups / alone:,.0f} groups/s, {alone / bare:.2f} x SimPy's floor of "
            f"{bare:.2f}), whole command {whole:.2f} CPU-s, {memory:.0f} MB"
        )
    print(f"this process's own peak: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000:.0f} MB")


if __name__ == "__main__":
    main()
