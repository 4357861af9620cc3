"""`delaysim evaluate`: a run or a model on the benchmark sets, greedy and sampled, resumable."""

import argparse
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from delaysim.benchmarks.sets import SETS, SIX
from delaysim.errors import UserError
from delaysim.files import digest
from delaysim.run.progress import clock_time
from delaysim.tasks.base import INSTRUCTION

if TYPE_CHECKING:
    from delaysim.benchmarks.load import Benchmark
    from delaysim.run.benchmark import Plan, RowFile
    from delaysim.run.respondent import Candidate

EXAMPLES = f"""examples:
  delaysim evaluate runs/fixed_delay/gmc-D128-... --data DIR        the last checkpoint of a run, on all six sets
  delaysim evaluate Qwen/Qwen3-1.7B-Base --n 16                    a hub id, sets from the hub
  delaysim evaluate DIR --benchmarks amc23,own.jsonl --problems 8  a local model, eight problems of two sets

sets: {", ".join(SIX)} (all), {", ".join(name for name in SETS if name not in SIX)}, and any .jsonl
file with id, problem and answer on each line. docs/evaluate.md says what every number is.
"""
EVERY_S = 10.0
"""Seconds between lines of progress."""


def evaluate(arguments: list[str]) -> int:
    """0, or UserError."""
    options = _parser().parse_args(arguments)
    _check(options)
    from delaysim.benchmarks.load import load_benchmarks, names_of
    from delaysim.run.benchmark import Plan, opened, plan_identity
    from delaysim.scorecard import scorecard

    tolerances = dict(map(_tolerance, options.rel_tol))
    benchmarks = load_benchmarks(names_of(options.benchmarks), options.data, options.clusters, tolerances)
    for benchmark in (benchmark for benchmark in benchmarks if benchmark.left_out):
        names = ", ".join(benchmark.left_out)
        print(f"{benchmark.name}: left out for want of a usable answer: {names}", file=sys.stderr)
    from delaysim.run.respondent import candidate

    who = candidate(options.target, options.dtype, options.template)
    plan = Plan(options.n, options.problems, options.batch, options.mode)
    asked = {**plan_identity(plan, benchmarks), **_decoding(options), "model": who.identity()}
    folder = options.out or Path("runs") / "evaluate" / f"{who.label}-n{options.n}-{digest(asked, 8)}"
    with opened(folder, asked) as rows:
        card = scorecard(_answered(who, benchmarks, plan, rows, options))
    _show(card, folder, options.format)
    return 0


def _answered(
    who: "Candidate", benchmarks: "list[Benchmark]", plan: "Plan", rows: "RowFile", options: Any
) -> list[dict[str, Any]]:
    from delaysim.grading.grader import Grader
    from delaysim.run.benchmark import evaluate_benchmarks

    with Grader(workers=options.workers) as grader:
        respondent = _Lazy(lambda: _respondent(who, options))
        evaluate_benchmarks(benchmarks, respondent, grader, plan, rows, _progress())
    return rows.rows


class _Lazy:
    """A respondent that is made when the first problem is asked: none is for a finished evaluation."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = cache(make)

    def respond(self, *arguments: Any) -> Any:
        """As the respondent does."""
        return self._make().respond(*arguments)


def _respondent(who: "Candidate", options: Any) -> Any:
    import torch

    from delaysim.policy.sample import Decoding
    from delaysim.run.respondent import PolicyRespondent

    torch.set_num_threads(options.threads)
    policy = who.load(options.device or ("cuda:0" if torch.cuda.is_available() else "cpu"))
    decoding = Decoding(options.max_new_tokens, options.temperature, policy.codec.stop_ids, who.autocast)
    return PolicyRespondent(policy, decoding, options.instruction)


def _decoding(options: Any) -> dict[str, Any]:
    return {name: getattr(options, name) for name in ("max_new_tokens", "temperature", "instruction")}


def _progress() -> Callable[[str, int, int, int], None]:
    """Lines on stderr: how far, how fast."""
    state = {"start": time.monotonic(), "said": 0.0, "tokens": 0.0}

    def say(name: str, done: int, total: int, tokens: int) -> None:
        now = time.monotonic()
        state["tokens"] += tokens
        if done == total or now - state["said"] > EVERY_S:
            state["said"] = now
            spent = now - state["start"]
            speed = state["tokens"] / max(spent, 1e-9)
            print(f"{name} {done}/{total}  {clock_time(spent)}  {speed:,.0f} tokens/s", file=sys.stderr, flush=True)

    return say


def _show(card: dict[str, Any], folder: Path, form: str) -> None:
    from delaysim.run import scoretable

    if form == "table":
        scoretable.show(card, folder)
    else:
        {"json": scoretable.write_json, "csv": scoretable.write_csv}[form](card, sys.stdout)


def _check(options: Any) -> None:
    for name, least in (("n", 0), ("batch", 1), ("max_new_tokens", 1), ("threads", 1), ("workers", 1)):
        if getattr(options, name) < least:
            raise UserError(f"--{name.replace('_', '-')} {getattr(options, name)}: give {least} or more")
    if options.problems is not None and options.problems < 1:
        raise UserError(f"--problems {options.problems}: give 1 or more, or leave it out for all")
    if options.temperature <= 0:
        raise UserError(f"--temperature {options.temperature:g}: give a number above 0; --n 0 evaluates greedily alone")


def _tolerance(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1:
        raise UserError(f"--rel-tol {text}: write SET=NUMBER with a number from 0 to below 1, e.g. minerva=0.01")
    return name, number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="delaysim evaluate",
        description="A run or a model on the benchmark sets: greedy, avg@n, pass@k, maj@n.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("target", metavar="RUN_OR_MODEL", help="a run directory, a local model, pkg:PACKAGE/FILE or a hub id")
    add("--benchmarks", default="all", metavar="NAMES", help="all, or names and .jsonl files with commas (default all)")
    add("--data", type=Path, metavar="DIR", help="folder with NAME.jsonl for each set (default: from the hub)")
    add("--n", type=int, default=1, help="sampled responses per problem, besides the greedy one (default 1)")
    add("--problems", type=int, metavar="K", help="only the first K problems of each set")
    add("--max-new-tokens", type=int, default=2048, metavar="T", help="longest response (default 2048)")
    add("--temperature", type=float, default=1.0, help="of the sampled responses (default 1)")
    add("--instruction", default=INSTRUCTION, help="what a problem is asked with")
    add("--template", help="how a problem becomes a prompt: auto, chat, qwen_math, plain, or a text with {problem}")
    add(
        "--mode", choices=("strict", "flexible"), default="strict", help="where answers count: strict = boxed or marked"
    )
    add("--rel-tol", action="append", default=[], metavar="SET=X", help="relative tolerance of a set's numbers")
    add("--clusters", type=Path, metavar="FILE", help="JSON object, id to cluster (default: by likeness of the texts)")
    add("--dtype", choices=("float32", "bfloat16"), help="of the weights (default: the run's, else float32)")
    add("--batch", type=int, default=64, help="responses generated together (default 64)")
    add("--threads", type=int, default=1, help="CPU threads of the model (default 1)")
    add("--device", metavar="NAME", help="cpu, cuda:0, ... (default: the first GPU where there is one)")
    add("--workers", type=int, default=1, help="processes that check answers (default 1)")
    add("--out", type=Path, metavar="DIR", help="folder of the rows (default: below runs/evaluate, by content)")
    add("--format", choices=("table", "json", "csv"), default="table")
    return parser
