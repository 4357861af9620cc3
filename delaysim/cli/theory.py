"""`delaysim theory`: what the theory of GMC-GRPO promises a delay, or a run that has been made. No torch."""

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from delaysim.errors import UserError
from delaysim.files import finite
from delaysim.run.progress import plain_console
from delaysim.run.records import read_rows
from delaysim.settings.config import Config
from delaysim.settings.configfile import load_config

if TYPE_CHECKING:
    from delaysim.theory import Report

UPDATES, EPS, GROUP_SIZE = 800, 0.28, 8
"""What 2610.01896 ran with."""
BOUNDED = ("gmc", "tic")
"""Estimators whose removed mass the KL divergence bounds."""
LARGEST = 10**9
LABELS = {"constant": "constant {:g}", "fixed": "min(n, {:g})", "realised": "this run", "mean": "its mean {:.4g}"}


class Schedule(NamedTuple):
    """Which delays a report is about. `mean` is a constant delay at the run's mean."""

    kind: str
    """A key of LABELS."""
    delay: float | None = None

    def __str__(self) -> str:
        return LABELS[self.kind].format(self.delay)


@dataclass
class Answer:
    """What is printed: one report per delay schedule, and what a run measured."""

    n_updates: int
    eps: float
    group_size: int
    reports: dict[Schedule, "Report"] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    measured: dict[str, Any] | None = None

    def add(self, schedule: Schedule, delays: Any) -> None:
        """Report on one more schedule: its delays, or their fourth moment."""
        from delaysim.theory import report

        self.reports[schedule] = report(delays, self.n_updates, self.eps, self.group_size)


def theory(arguments: list[str]) -> int:
    """`delaysim theory --D 32 128 [--updates N]` or `delaysim theory RUN_DIR`; --json for programs."""
    options = _options(arguments)
    answer = _of_delays(options) if options.run is None else _of_run(options)
    if options.json:
        print(json.dumps(finite(_as_values(answer)), indent=1))
        return 0
    console = plain_console()
    for line in (*answer.notes, *_constants(answer)):
        console.print(line, markup=False)
    console.print()
    console.print(_table(answer))
    for line in _closing_lines(answer):
        console.print(line, markup=False)
    return 0


# what is asked


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; e.g. delaysim theory --D 32 128 --updates 800, or delaysim theory RUN_DIR")


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = _Parser(prog="delaysim theory", description="What theory promises a delay, or a run that has been made.")
    parser.add_argument("run", nargs="?", metavar="RUN_DIR", help="a run directory: its realised delays")
    parser.add_argument("--D", nargs="+", type=_whole(0), help="fixed delays [updates]")
    parser.add_argument("--updates", type=_whole(2), help="N (default: 800, the paper's)")
    parser.add_argument("--eps", type=_above_zero, help="threshold (default: the run's, or 0.28, the paper's)")
    parser.add_argument("--G", type=_whole(1), help="responses in a group (default: 8)")
    parser.add_argument("--json", action="store_true", help="print every number, for programs")
    options = parser.parse_args(arguments)
    if (options.run is None) == (options.D is None):
        parser.error("give either a run directory or delays with --D")
    if options.run is not None and (options.updates, options.G) != (None, None):
        parser.error("a run directory has its own updates and G: drop --updates and --G")
    return options


def _whole(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else -1
        if not least <= value <= LARGEST:
            raise argparse.ArgumentTypeError(f"{text}: give a whole number from {least} to {LARGEST}")
        return value

    return parse


def _above_zero(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= LARGEST:
        raise argparse.ArgumentTypeError(f"{text}: give a number above 0, at most {LARGEST}")
    return value


# the two uses


def _of_delays(options: argparse.Namespace) -> Answer:
    from delaysim.theory import constant_fourth_moment, fixed_delay_fourth_moment

    n = options.updates or UPDATES
    answer = Answer(n, options.eps or EPS, options.G or GROUP_SIZE)
    for delay in options.D:
        answer.add(Schedule("constant", delay), constant_fourth_moment(delay))
        answer.add(Schedule("fixed", delay), fixed_delay_fourth_moment(n, delay))
    return answer


def _of_run(options: argparse.Namespace) -> Answer:
    from delaysim.theory import constant_fourth_moment

    run = Path(options.run)
    cfg = load_config(run / "config.yaml")
    updates, delays = _consumed(run)
    n = len(np.unique(updates))
    if n < 2:
        raise UserError(f"{run} has {n} finished updates: rates need 2 or more; go on with delaysim resume {run}")
    answer = Answer(n, options.eps or _own_eps(cfg) or EPS, cfg.G, notes=list(_notes(cfg, n, options.eps)))
    answer.add(Schedule("realised"), delays)
    mean = float(delays.mean())
    answer.add(Schedule("mean", mean), constant_fourth_moment(mean))
    if cfg.suite_name == "fixed_delay" and cfg.D is not None:
        answer.add(Schedule("constant", cfg.D), constant_fourth_moment(cfg.D))
    answer.measured = _measured(run, cfg)
    return answer


def _consumed(run: Path) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Update and delay of every consumed group: of the trace, or of the rows so far where a run has not ended."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    path = run / "trace.parquet"
    if not path.exists():
        rows = list(read_rows(run / "groups.jsonl"))
        return np.array([row["update"] for row in rows], np.int64), np.array([row["delay"] for row in rows], float)
    try:
        table = pq.read_table(path, columns=["update", "delay", "fate"])
        table = table.filter(pc.equal(table["fate"].cast(pa.string()), "trained"))
        return table["update"].to_numpy().astype(np.int64), table["delay"].to_numpy().astype(np.float64)
    except (pa.ArrowException, KeyError, OSError) as error:
        what = str(error).splitlines()[0]
        raise UserError(f"{path}: {what}: copy the run again, or move this file away to use groups.jsonl") from None


def _own_eps(cfg: Config) -> float | None:
    """The run's threshold on trajectory ratios; None where it has none, or one of 0, which bounds nothing."""
    return cfg.estimator.eps or None if cfg.estimator.name in BOUNDED else None


def _notes(cfg: Config, n: int, asked: float | None) -> Iterator[str]:
    if n < cfg.updates:
        yield f"so far         {n} of {cfg.updates} updates"
    if asked is None and _own_eps(cfg) is None:
        yield f"threshold      {cfg.estimator.name} has none on whole responses: the paper's (--eps)"


def _measured(run: Path, cfg: Config) -> dict[str, Any] | None:
    """Mean removed mass of a consumed group, and its bound where the rows have a KL divergence."""
    from delaysim.theory import gmc_constant, removed_bound, tic_constant

    rows = [row for row in read_rows(run / "groups.jsonl") if row.get("removed") is not None]
    known = [row for row in rows if row.get("kl_pi_mu") is not None]
    if not rows:
        return None
    found: dict[str, Any] = {"estimator": cfg.estimator.name, "removed": _mean(known or rows, "removed")}
    eps = _own_eps(cfg)
    if known and eps is not None:
        constant = {"gmc": gmc_constant, "tic": tic_constant}[cfg.estimator.name](eps)
        kl = _mean(known, "kl_pi_mu")
        found |= {"eps": eps, "kl_pi_mu": kl, "bound": removed_bound(max(kl, 0.0), constant)}
    return found


def _mean(rows: list[dict[str, Any]], column: str) -> float:
    return float(np.mean([row[column] for row in rows]))


# what is printed


def _as_values(answer: Answer) -> dict[str, Any]:
    from delaysim import theory as t

    eps, n = answer.eps, answer.n_updates
    constants = {
        "gmc_constant": t.gmc_constant(eps),
        "tic_constant": t.tic_constant(eps),
        "sharp_constant": t.sharp_constant(eps),
        "coefficient_ratio_squared": t.coefficient_ratio(eps) ** 2,
        "tuned_factor": t.tuned_factor(eps),
        "free_tau4": t.free_fourth_moment(n),
        "free_delay": t.free_delay(n),
        "noise": t.rate(0.0, n, 1.0),
        "group_factor": t.group_factor(1, answer.group_size),
    }
    schedules = [{"schedule": s.kind, "D": s.delay, **asdict(report)} for s, report in answer.reports.items()]
    head = {"n_updates": n, "eps": eps, "group_size": answer.group_size, "constants": constants}
    return {**head, "schedules": schedules, "measured": answer.measured}


def _constants(answer: Answer) -> list[str]:
    c = _as_values(answer)["constants"]
    return [
        f"setting        N={answer.n_updates} updates, eps={answer.eps:g}, G={answer.group_size}",
        f"removed mass   at most KL(pi||mu)/{c['gmc_constant']:.4f} (GMC; sharpest {c['sharp_constant']:.4f}),"
        f" /{c['tic_constant']:.4g} (TIC)",
        f"delay term     TIC/GMC {c['coefficient_ratio_squared']:.4g} at one step size,"
        f" GMC/TIC {c['tuned_factor']:.3g} with tuned steps",
        f"free           up to tau4 = {c['free_tau4']:.4g}, a constant delay of {c['free_delay']:.3g};"
        f" N^-1/2 = {c['noise']:.3g}",
        f"group size     GMC's delay term x{c['group_factor']:.3g} against G=1, where all ratios are near 1",
    ]


def _table(answer: Answer) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    columns = ("delays", "tau4", "p", "r", "step\nGMC", "\nTIC", "delay\nGMC", "\nTIC", "eps*\nGMC", "\nTIC")
    for name in columns:
        table.add_column(name, justify="left" if name == "delays" else "right", no_wrap=True, vertical="bottom")
    for schedule, r in answer.reports.items():
        p, best, rate = "-", ["-", "-"], "none" if r.exponent is None else f"{r.exponent:.3f}"
        if r.tau4:
            p, best = f"{r.p:.3f}", [f"{m.eps_uncapped:.2f}" for m in (r.gmc, r.tic)]
        tuned = (f"{value:.3g}" for value in (r.gmc.step, r.tic.step, r.gmc.delay, r.tic.delay))
        table.add_row(str(schedule), f"{r.tau4:.3g}", p, rate, *tuned, *best)
    return table


def _closing_lines(answer: Answer) -> Iterator[str]:
    yield "tau4 = N^p; rate N^-r; constants taken as 1; eps* above 1 counts as 1"
    m = answer.measured
    if m is None:
        return
    yield f"measured       {m['estimator']} removed {m['removed']:.4g} a response on average"
    if "bound" in m:
        yield f"               KL(pi||mu) {m['kl_pi_mu']:.4g} nats allows {m['bound']:.4g}"
    elif m["estimator"] in BOUNDED:
        yield "               its rows have no KL(pi||mu) for a bound"
