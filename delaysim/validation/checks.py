"""Everything that is checked."""

from collections.abc import Iterator
from functools import partial

from delaysim.validation import formulas as f
from delaysim.validation.check import Check
from delaysim.validation.delays import Pipeline, capped, fixed, pipeline, poisson_front, uncoupled
from delaysim.validation.queues import little_of_queue, little_of_run, repairs, wait
from delaysim.validation.services import CONSTANT, EXPONENTIAL, Service, lognormal

SLACK = 0.005
"""Tolerance of a law of long runs [share of the value]: no run is infinite."""
SIGMA = 0.7
"""Of lognormal service times: the log-length's in the default law of lengths."""
LINES: tuple[tuple[str, float, int, int], ...] = (
    ("M/M/1", 0.5, 1, 50_000),
    ("M/M/1", 0.8, 1, 300_000),
    ("M/M/4", 3.2, 4, 200_000),
    ("M/M/16", 14.0, 16, 200_000),
    ("M/G/1", 0.5, 1, 50_000),
    ("M/G/1", 0.8, 1, 300_000),
    ("M/D/1", 0.8, 1, 150_000),
    ("M/D/4", 2.4, 4, 50_000),
    ("M/D/4", 3.2, 4, 100_000),
    ("M/D/16", 14.0, 16, 100_000),
)
"""Queue, arrivals per service time, servers, customers."""
PUBLISHED = (
    Pipeline(120, 240, 2, 0.63, 1.40),
    Pipeline(240, 120, 2, 0.92, 1.40),
    Pipeline(128, 128, 2, 1.07, 1.40),
    Pipeline(128, 128, 1, 1.14, 1.40),
    Pipeline(512, 64, 4, 1.30, 1.89),
    Pipeline(2048, 64, 2, 1.50, 2.10),
    Pipeline(480, 64, 2, 0.50, 2.10),
    Pipeline(1024, 256, 1, 0.95, 2.58),
)
"""Worked rows of the staleness formula. The last one drops groups although generation is the slower side."""
CAPS = (
    (0, "completion"), (1, "completion"), (4, "completion"), (8, "completion"), (64, "completion"), (157, "completion"),
    (8, "submit"), (8, "version"), (8, "lifo"), (8, "freshest"), (8, "random"), (8, "shortest"), (8, "in_order"),
)  # fmt: skip
"""Look-ahead and order."""


def checks() -> tuple[Check, ...]:
    """All of them, in the order in which they are told."""
    return (*_littles(), *_lines(), *_repairmen(), *_caps(), *_fixed(), *_arrivals(), *_published())


def _littles() -> Iterator[Check]:
    what = "number / (throughput * residence)"
    yield Check("Little", "M/M/4, arrivals 2.4", what, 1.0, partial(little_of_queue, 2.4, 4), SLACK, quick=True)
    yield Check("Little", "coupled, eta 157", what, 1.0, partial(little_of_run, 157), SLACK)


def _service(queue: str) -> Service:
    return {"M": EXPONENTIAL, "G": lognormal(SIGMA), "D": CONSTANT}[queue[2]]


def _expected(queue: str, rate: float, servers: int) -> float:
    if queue[2] == "G":
        return f.mg1_wait(rate, 1.0, f.lognormal_second_moment(SIGMA))
    return f.mmc_wait(rate, servers) if queue[2] == "M" else f.mdc_wait(rate, servers)


def _lines() -> Iterator[Check]:
    for queue, rate, servers, customers in LINES:
        expected = _expected(queue, rate, servers)
        measure = partial(wait, rate, servers, _service(queue), customers)
        quick = customers <= 50_000
        yield Check(queue, f"arrivals {rate:g}", "mean wait", expected, measure, SLACK * expected, quick)


def _repairmen() -> Iterator[Check]:
    for machines in (4, 10, 16):
        expected = f.repairman_throughput(machines, 10.0, 1.0)
        measure, setting = partial(repairs, machines, 10.0, 20_000), f"{machines} machines, up 10"
        yield Check("machine repairman", setting, "throughput", expected, measure, SLACK * expected, machines == 10)


def _caps() -> Iterator[Check]:
    for eta, order in CAPS:
        measure, quick = partial(capped, eta, order, 1000 + 40 * eta), eta <= 8 and order in ("completion", "random")
        yield Check("cap law", f"eta {eta}, {order}", "mean delay", eta, measure, SLACK * eta, quick)


def _fixed() -> Iterator[Check]:
    for delay in (0, 1, 32, 128, 512):
        expected = f.whole_run_mean(800, delay)
        yield Check("fixed delay", f"D {delay}, N 800", "mean delay", expected, partial(fixed, delay, 800), quick=True)
    yield Check("no coupling", "C_gen 85, C_update 1", "farthest delay", 85.0, partial(uncoupled, 800), quick=True)


def _arrivals() -> Iterator[Check]:
    """A group also waits until a mini-batch is full and the update before it is over: two updates are allowed."""
    for rate in (7.0, 7.5):
        expected, measure = rate * 85.0 / 8, partial(poisson_front, rate, 8000)
        yield Check("Poisson front end", f"arrivals {rate:g}, B 8", "mean delay", expected, measure, 2.0)


def _published() -> Iterator[Check]:
    for row in PUBLISHED:
        expected = f.staleness(*row)
        exact = row.kept >= 2 and abs(row.ratio - 1) > 0.1
        setting = f"C {row.slots}, B {row.batch}, q {row.kept}, rho {row.ratio:g}, tail {row.tail:g}"
        tolerance = expected * (0.02 if exact else 0.06)
        measure, quick = partial(pipeline, row, 600), row == PUBLISHED[4]
        yield Check("staleness formula", setting, "mean delay", expected, measure, tolerance, quick)
