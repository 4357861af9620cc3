"""`delaysim evaluate`: a run or a model on the benchmark sets, greedy and sampled, resumable."""

import argparse
import re
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from delaysim.benchmarks.sets import SETS, SIX
from delaysim.errors import RunFailed, SamplerFailed, UserError
from delaysim.files import digest, read_json
from delaysim.run.progress import clock_time
from delaysim.tasks.base import INSTRUCTION

if TYPE_CHECKING:
    from delaysim.benchmarks.load import Benchmark
    from delaysim.run.benchmark import Plan, RowFile
    from delaysim.run.respondent import Candidate, PolicyRespondent

EXAMPLES = f"""examples:
  delaysim evaluate runs/fixed_delay/gmc-D128-... --data DIR        the last checkpoint of a run, on all six sets
  delaysim evaluate Qwen/Qwen3-1.7B-Base --n 16                    a hub id, sets from the hub
  delaysim evaluate DIR --benchmarks amc23,own.jsonl --problems 8  a local model, eight problems of two sets
  delaysim evaluate Qwen/Qwen3-8B-Base --dtype bfloat16 --sampler vllm sampler.memory_share=0.7 --n 16

sets: {", ".join(SIX)} (all), {", ".join(name for name in SETS if name not in SIX)}, and any .jsonl
file with id, problem and answer on each line. docs/evaluate.md says what every number is.
"""
EVERY_S = 10.0
"""Seconds between lines of progress."""
AT_ONCE, AT_ONCE_ON_A_GPU = 64, 1024
"""Responses generated together where nothing is said; the second with vLLM, which keeps its slots full."""


def evaluate(arguments: list[str]) -> int:
    """0, or UserError."""
    options = _parser().parse_intermixed_args(arguments)
    _check(options)
    from delaysim.run.benchmark import opened, plan_identity
    from delaysim.run.respondent import candidate
    from delaysim.scorecard import scorecard

    benchmarks = _benchmarks(options)
    who = candidate(options.target, options.dtype, options.template, options.sampler, options.settings)
    who = who.decoding(options.max_new_tokens, options.temperature)
    device = _device(options.device)
    plan = _plan(options, device, who.answering.sampler.kind)
    asked = {**plan_identity(plan, benchmarks), **_decoding(options), **who.drawn()}
    folder = options.out or Path("runs") / "evaluate" / f"{who.label}-n{options.n}-{digest(asked, 8)}"
    lazy = _Lazy(lambda: _respondent(who, device, options, benchmarks, plan))
    with opened(folder, asked, _run(Path(options.target))) as rows, closing(lazy) as respondent:
        card = scorecard(_answered(respondent, benchmarks, plan, rows, options.workers))
    _show(card, folder, options.format)
    return 0


def _run(target: Path) -> dict[str, Any] | None:
    """Which run is evaluated, for `delaysim compare --benchmarks`; None for a model."""
    from delaysim.analysis.settings import run_settings

    if not (target / "manifest.json").is_file():
        return None
    identity = read_json(target / "manifest.json")["identity"]
    return {"run": target.resolve().name, "seed": identity["seed"], "settings": run_settings(target, identity)}


def _benchmarks(options: Any) -> "list[Benchmark]":
    from delaysim.benchmarks.load import load_benchmarks, names_of

    tolerances = dict(map(_tolerance, options.rel_tol))
    benchmarks = load_benchmarks(names_of(options.benchmarks), options.data, options.clusters, tolerances)
    for benchmark in (benchmark for benchmark in benchmarks if benchmark.left_out):
        names = ", ".join(benchmark.left_out)
        print(f"{benchmark.name}: left out for want of a usable answer: {names}", file=sys.stderr)
    return benchmarks


def _answered(
    respondent: "_Lazy", benchmarks: "list[Benchmark]", plan: "Plan", rows: "RowFile", workers: int
) -> list[dict[str, Any]]:
    from delaysim.grading.grader import Grader
    from delaysim.run.benchmark import evaluate_benchmarks

    with Grader(workers=workers) as grader:
        try:
            evaluate_benchmarks(benchmarks, respondent, grader, plan, rows, _progress())
        except SamplerFailed as failure:
            raise RunFailed(f"{failure}; {len(rows.rows)} rows are kept, the same command goes on") from failure
    return rows.rows


class _Lazy:
    """A respondent that is made when the first problem is asked: none is for a finished evaluation."""

    def __init__(self, make: "Callable[[], PolicyRespondent]") -> None:
        self._make = make
        self._made: PolicyRespondent | None = None

    def respond(self, *arguments: Any) -> Any:
        """As the respondent does."""
        self._made = self._made or self._make()
        return self._made.respond(*arguments)

    def close(self) -> None:
        """End what was made."""
        if self._made is not None:
            self._made.close()


def _respondent(
    who: "Candidate", device: str, options: Any, benchmarks: "list[Benchmark]", plan: "Plan"
) -> "PolicyRespondent":
    import torch

    from delaysim.run.benchmark import batches
    from delaysim.run.respondent import respondent

    torch.set_num_threads(options.threads)
    items = [item for *_, together in batches(benchmarks, plan) for item in together]
    return respondent(who, device, options.instruction, items)


def _device(named: str | None) -> str:
    """Where the model answers."""
    import torch

    return named or ("cuda:0" if torch.cuda.is_available() else "cpu")


def _plan(options: Any, device: str, kind: str) -> "Plan":
    from delaysim.run.benchmark import Plan

    batch = options.batch or (AT_ONCE_ON_A_GPU if kind == "vllm" and device != "cpu" else AT_ONCE)
    return Plan(options.n, options.problems, batch, options.mode)


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
    for name, least in (("n", 0), ("max_new_tokens", 1), ("threads", 1), ("workers", 1)):
        if getattr(options, name) < least:
            raise UserError(f"--{name.replace('_', '-')} {getattr(options, name)}: give {least} or more")
    for name, without in (("problems", " for all"), ("batch", "")):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise UserError(f"--{name} {value}: give 1 or more, or leave it out{without}")
    if options.device is not None and not re.fullmatch(r"cpu|cuda:\d+", options.device):
        raise UserError(f"--device {options.device} is no device; write cpu, or cuda:0")
    if options.temperature <= 0:
        raise UserError(f"--temperature {options.temperature:g}: give a number above 0; --n 0 evaluates greedily alone")


def _tolerance(text: str) -> tuple[str, float]:
    """SET=NUMBER, or a set alone for what is customary there."""
    name, equals, value = text.partition("=")
    customary = SETS[name].rel_tol if name in SETS else None
    if not equals and customary is not None:
        return name, customary
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
    add("settings", nargs="*", metavar="sampler.KEY=VALUE", help="settings of a vLLM engine (docs/vllm.md)")
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
    add(
        "--rel-tol",
        action="append",
        default=[],
        metavar="SET=X",
        help="relative tolerance of a set's numbers; minerva alone: 0.01",
    )
    add("--clusters", type=Path, metavar="FILE", help="JSON object, id to cluster (default: by likeness of the texts)")
    add("--sampler", choices=("hf", "vllm"), help="who draws the responses (default: as the run, else hf)")
    add("--dtype", choices=("float32", "bfloat16"), help="computed in (default: as the run sampled, else float32)")
    add("--batch", type=int, help="responses generated together (default 64; with vllm on a GPU 1024)")
    add("--threads", type=int, default=1, help="CPU threads of the model (default 1)")
    add("--device", metavar="NAME", help="cpu, cuda:0, ... (default: the first GPU where there is one)")
    add("--workers", type=int, default=1, help="processes that check answers (default 1)")
    add("--out", type=Path, metavar="DIR", help="folder of the rows (default: below runs/evaluate, by content)")
    add("--format", choices=("table", "json", "csv"), default="table")
    return parser
