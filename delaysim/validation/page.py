"""The outcomes as docs/validation.md."""

from collections.abc import Iterable, Sequence

from delaysim.validation.check import CONFIDENCE, Outcome
from delaysim.validation.intervals import BATCHES

HEADER = ("law", "setting", "what", "expected", "simulated", "+-", "error", "tolerance", "verdict")
INTRODUCTION = """# The clock against closed forms

    delaysim validate            # {count} checks, one or two minutes
    delaysim validate --quick    # {quick} of them, some seconds

Written by `delaysim validate --format md > docs/validation.md`. Every check runs on delaysim's own clock, with no code
of its own for a queue: prompts come in by `arrivals`, `workers` serve them, `reward_lag` is the time for which a
machine runs, and the service time is a law of response lengths. Seeds are fixed, so a check passes always or never.

**When a check is missed.** The simulated value has an interval from the means of {batches} batches of consecutive
values, after a warm-up is left out. The check is missed if the closed form lies outside the interval widened by the
tolerance. All intervals together hold with {confidence:.0%} (Bonferroni over the {count} checks): with seeds drawn
anew, a right simulator would miss one or more in fewer than {most:.0%} of runs. Rows without `+-` have no chance in
them. One miss makes the command exit with 1. Waits of loaded queues are noisy; the tests also hold them, customer by
customer, to the recursion of Kiefer and Wolfowitz, and break the clock to see the misses.
"""
NOTES = """
**What is checked.** Little: the mean number in the system, counted moment by moment, over throughput times residence
of those who leave (the ends of the window make the difference). M/M/c: Erlang's C formula. M/G/1: Pollaczek and
Khinchine, lognormal service with sigma 0.7. M/D/c: Crommelin's series. Mean waits, in mean service times, do not
include service. Machine repairman: Palm, repairs of 1; it takes any distribution of running times, here a constant.
Cap law: while admission binds, the mean delay is the look-ahead, whatever the order and the lengths. Fixed delay:
D - D(D+1)/(2N) over a whole run. No coupling: every steady delay is C_gen/C_update with `eta=auto`. Poisson front end:
arrivals * C_gen / B, up to the wait for a full mini-batch and for the update before it: two updates are allowed.

**Staleness formula** (Applied Compute, 2026-07-03): `C*tail/(B*max(1,rho))` before the queue, then `rho` in it for
rho < 1 and `(2q+rho-1)/(2rho)` above. C slots and B counted in responses, q finished mini-batches are kept, rho is
generation's rate over the learner's, tail is E[longest of a group]/E[length], here of 8 lognormal lengths. Tolerances:
2 % for q of 2 or more and rho farther than 0.1 from 1, otherwise 6 %: near rho = 1 with q = 1 groups are dropped
although generation is the slower side.
"""


def cells(outcome: Outcome) -> tuple[str, ...]:
    """What is told of an outcome, one text per column of HEADER."""
    check, half = outcome.check, outcome.half_width
    return (
        check.law,
        check.setting,
        check.what,
        _number(check.expected),
        _number(outcome.measured.value),
        _number(half) if half else "",
        f"{outcome.error / check.expected:+.2%}" if check.expected else f"{outcome.error:+.4g}",
        _number(check.tolerance) if check.tolerance else "",
        "ok" if outcome.passed else "MISS",
    )


def page(outcomes: Sequence[Outcome], count: int, quick: int) -> str:
    """The page; `count` checks there are, `quick` of them are quick ones."""
    head = INTRODUCTION.format(count=count, quick=quick, batches=BATCHES, confidence=CONFIDENCE, most=1 - CONFIDENCE)
    rows = [HEADER, ("---",) * 3 + ("---:",) * 5 + ("---",), *map(cells, outcomes)]
    return head + "\n" + "\n".join(map(_line, rows)) + "\n" + NOTES


def _line(row: Iterable[str]) -> str:
    return f"| {' | '.join(row)} |"


def _number(value: float) -> str:
    return f"{value:.4g}"
