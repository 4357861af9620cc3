"""mode=plan: what would run, what it costs, and where the estimate comes from. Starts and writes nothing. No torch."""

from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from delaysim.cli.launches import Launches, decided_by_policies, expected, mean_length
from delaysim.files import read_json
from delaysim.presets.base import in_words
from delaysim.ratios import BYTES_PER_TOKEN
from delaysim.run.footprint import (
    OVERHEAD,
    PROMPT_TOKENS,
    Footprint,
    at_once,
    device_memory,
    engine,
    fitting_share,
    footprint,
    peaks,
)
from delaysim.run.progress import clock_time, requested_delay
from delaysim.run.provenance import cpu
from delaysim.run.records import read_rows
from delaysim.settings.behaviour import recomputes
from delaysim.settings.chosen import chosen_estimator
from delaysim.settings.config import Config
from delaysim.settings.identity import identity, model_name, needs_pilot, run_path
from delaysim.settings.models import TinyModelConf

RESPONSES = 64
"""The model files give seconds for an update of this many responses."""
BYTES_PER_UPDATE, BYTES_PER_GROUP, BYTES_PER_EVAL = 1150, 510, 110


@dataclass(frozen=True)
class Measured:
    """What finished runs of the same model on the same machine took."""

    seconds_per_response: float
    tokens_per_response: float
    runs: int


@dataclass(frozen=True)
class Planned:
    """One run as planned."""

    path: Path
    state: str
    delay: str
    responses: int
    tokens: float
    seconds: float
    disk: float
    """[bytes], recorded ratios included."""
    ratios: float
    """Of it, at most, token log-probabilities for `delaysim screen` [bytes]."""
    sim_time: float | None
    source: str
    notes: list[str]
    """Its preset; what it needs on its device and whether that fits; as lines."""
    policies: str | None = None
    """What the clock's policies do to the number of responses."""
    jobs: int = 1
    """Runs of its sweep at once."""


def plan_one(cfg: Config) -> Planned:
    """Estimate one run."""
    path = run_path(cfg)
    evaluated, launches = _evaluated(cfg), expected(cfg)
    pilot = cfg.clock.pilot * cfg.G if needs_pilot(cfg) else 0
    total = launches.groups * cfg.G + pilot
    seconds, tokens, source = _cost_of(cfg, total, evaluated)
    return Planned(
        path=path,
        state=_state(path),
        delay=requested_delay(cfg),
        responses=total,
        tokens=tokens,
        seconds=seconds,
        disk=_disk(cfg, evaluated),
        ratios=_ratios(cfg),
        sim_time=launches.sim_time,
        source=source,
        notes=[*preset_lines(cfg), *memory_lines(cfg)],
        policies=_policies(cfg, launches),
        jobs=cfg.jobs,
    )


def print_plan(planned: list[Planned], console: Console) -> None:
    """The grid, one row a run, and its totals."""
    table = Table(box=None)
    for name in ("run", "state", "delay", "responses", "tokens", "time", "disk", "sim time"):
        justify = "left" if name in ("run", "state", "delay") else "right"
        table.add_column(name, justify=justify, overflow="fold", no_wrap=name != "run")  # type: ignore[arg-type]
    for p in planned:
        sim = "-" if p.sim_time is None else f"{p.sim_time:,.0f}"
        numbers = (f"{p.responses:,}", f"{p.tokens:,.0f}", clock_time(p.seconds), _size(p.disk), sim)
        table.add_row(p.path.name, p.state, p.delay, *numbers)
    console.print(table)
    todo = [p for p in planned if p.state not in ("done", "collapsed")]
    if ratios := sum(p.ratios for p in todo):
        console.print(f"of the disk space up to {_size(ratios)} for recorded ratios (record.ratios=all|sample|none)")
    console.print(
        f"{len(planned)} runs, {len(todo)} to do: about {_together(todo)}, "
        f"{_size(sum(p.disk for p in todo))} on disk; times from {', '.join(sorted({p.source for p in planned}))}",
        markup=False,
    )
    for line in dict.fromkeys(p.policies for p in planned if p.policies is not None):
        console.print(line, markup=False)
    for lines in dict.fromkeys(tuple(p.notes) for p in planned):
        for line in lines:
            console.print(line, markup=False)


def _together(todo: list[Planned]) -> str:
    """How long they take, as many at once as asked for."""
    at_once = min(len(todo), max((p.jobs for p in todo), default=1))
    how = f"{at_once} at once" if at_once > 1 else "one after another"
    return f"{clock_time(sum(p.seconds for p in todo) / max(1, at_once))} {how}"


def _cost_of(cfg: Config, responses: int, evaluated: int) -> tuple[float, float, str]:
    """Seconds and tokens of the responses, and where the numbers come from."""
    known = _measured(cfg)
    if known is not None:
        source = f"{known.runs} finished runs here"
        return known.seconds_per_response * responses, known.tokens_per_response * responses, source
    speed = None if isinstance(cfg.model, TinyModelConf) else cfg.model.speed
    if speed is None:
        seconds = cfg.model.seconds_per_update / RESPONSES * (responses + evaluated / 3)
        return seconds, _tokens_bound(cfg, responses), "the model's yaml"
    length = mean_length(cfg)
    sampled, trained = (responses + evaluated) * length, responses * (length + PROMPT_TOKENS)
    first_look = 0 if chosen_estimator(cfg.estimator).scope == "response" else 1 / 3  # of a pass with gradients
    passes = cfg.learner.updates_per_batch * (1 + first_look) + recomputes(cfg) / 3
    seconds = sampled / getattr(speed, cfg.sampler.kind) + trained * passes / speed.train
    return seconds, responses * length, f"speeds assumed in the model's yaml, {length:.0f} tokens a response"


def _evaluated(cfg: Config) -> int:
    every = cfg.evaluation.every
    looks = 2 if every is None else 1 + -(-cfg.updates // every)
    return looks * cfg.evaluation.problems * (1 + cfg.evaluation.samples)


def _policies(cfg: Config, launches: Launches) -> str | None:
    """How many responses are generated for those trained on, where the clock's policies decide it."""
    if not decided_by_policies(cfg):
        return None
    if launches.trouble is not None:
        return f"launches       in a trace with assumed lengths {launches.trouble}"
    equal = ", no rewards all equal" if cfg.clock.zero_variance != "kept" and not cfg.lengths.flat else ""
    return (
        f"launches       {launches.groups:,} groups for the {cfg.updates * cfg.B:,} that are trained on, "
        f"{launches.dropped:,} dropped (by a trace: lengths=, at most {cfg.sampler.max_new_tokens} tokens{equal})"
    )


def _tokens_bound(cfg: Config, responses: int) -> float:
    return float(responses * cfg.sampler.max_new_tokens)


def _disk(cfg: Config, evaluated: int) -> float:
    rows = cfg.updates * (BYTES_PER_UPDATE + cfg.B * BYTES_PER_GROUP) + evaluated * BYTES_PER_EVAL
    size = footprint(cfg)
    checkpoint = 3 * _weights(cfg) if size is None else size.checkpoint
    return rows + 2 * checkpoint + _ratios(cfg)  # one checkpoint is written before the last is removed


def _ratios(cfg: Config) -> float:
    """Bytes of ratios.bin at most: every response of the longest length."""
    copies = (
        1 + 0.5 * (cfg.learner.updates_per_batch > 1) + recomputes(cfg)
    )  # and the proximal policy's; and both sides'
    per_token = BYTES_PER_TOKEN * copies
    share = {"all": 1.0, "sample": 0.1, "none": 0.0}[cfg.record.ratios]
    return share * cfg.updates * cfg.B * cfg.G * cfg.sampler.max_new_tokens * per_token


def _weights(cfg: Config) -> float:
    """Bytes of one copy of the weights of a model whose shape is not known, roughly."""
    from delaysim.data import resolve_model_path

    path = resolve_model_path(cfg.model.path)
    if path is None:
        return float("nan")
    files = [path] if path.is_file() else list(path.glob("*.safetensors"))
    packed = 6.0 if path.suffix == ".gguf" else 1.0  # a 4-bit file unpacks to about six times its size
    return packed * sum(file.stat().st_size for file in files)


def _state(path: Path) -> str:
    status = path / "status.json"
    return str(read_json(status).get("state", "new")) if status.exists() else "new"


def _measured(cfg: Config) -> Measured | None:
    """Median cost of the finished runs below runs_dir with this model, task and processor."""
    wanted = {key: identity(cfg)[key] for key in ("model", "task", "sampler")}
    found = [_cost(path.parent) for path in Path(cfg.runs_dir).glob("*/*/manifest.json") if _matches(path, wanted)]
    costs = [cost for cost in found if cost is not None]
    if not costs:
        return None
    return Measured(median(c[0] for c in costs), median(c[1] for c in costs), len(costs))


def _matches(path: Path, wanted: dict[str, Any]) -> bool:
    manifest = read_json(path)
    made = manifest.get("identity", {})
    same = all(made.get(key) == value for key, value in wanted.items())
    return same and _state(path.parent) == "done" and manifest["legs"][-1]["machine"]["cpu"] == cpu()


def _cost(run: Path) -> tuple[float, float] | None:
    updates = list(read_rows(run / "updates.jsonl"))
    launches = sum(len(row["lengths"]) for row in read_rows(run / "launches.jsonl"))
    tokens = sum(sum(row["lengths"]) for row in read_rows(run / "launches.jsonl"))
    if not updates or not launches:
        return None
    return sum(row["wall_s"] for row in updates) / launches, tokens / launches


def preset_lines(cfg: Config) -> list[str]:
    """The preset and its knobs, where there is one."""
    return [] if cfg.preset is None else [f"preset         {in_words(cfg.preset)}"]


def memory_lines(cfg: Config) -> list[str]:
    """Peaks of learner and sampler, what they are made of, and whether they fit the device."""
    size, device = footprint(cfg), device_memory(cfg)
    if size is None:
        return [f"memory         {model_name(cfg)}: not known before its config.json is here; model.shape= gives it"]
    whole = size.parameters == size.trained
    trained = f"{size.parameters / 1e6:,.2f}M parameters" + ("" if whole else f", {size.trained / 1e6:,.1f}M trained")
    use = "; ".join(f"{name}: {_verdict(peak, device)}" for name, peak in peaks(cfg, size, device).items())
    advice = _advice(cfg, size, device)
    parts = ", ".join(f"{name} {_size(count)}" for name, count in size.parts.items())
    return [
        f"memory         {model_name(cfg)} ({trained}) on {use}",
        f"               learner {_size(size.learner)}, {_sampler(cfg, size, device)}, "
        f"checkpoint {_size(size.checkpoint)} on disk",
        f"               {parts}",
        *([] if advice is None else [f"               {advice}"]),
    ]


def _sampler(cfg: Config, size: Footprint, device: float | None) -> str:
    """Its peak; of a vLLM engine what it is given, and how many responses at full length that holds."""
    given = engine(cfg, size, device)
    if given is None:
        return f"sampler {_size(size.sampler)}"
    overhead = 0.0 if cfg.devices[-1] == "cpu" else OVERHEAD
    held = int((given - size.own - overhead) / (size.kv_cache / at_once(cfg)))
    return f"engine {_size(given)} (holds {held} responses at full length)"


def _advice(cfg: Config, size: Footprint, device: float | None) -> str | None:
    """What lets a vLLM engine fit beside the learner."""
    if device is None or cfg.sampler.kind != "vllm" or len(cfg.devices) == 2 or cfg.devices == ["cpu"]:
        return None
    share = fitting_share(cfg, size, device)
    if share is None or share >= cfg.sampler.memory_share:
        return None
    return f"sampler.memory_share={share:g} would fit, and so may sampler.sleep=1"


def _verdict(peak: float, device: float | None) -> str:
    if device is None:
        return f"{_size(peak)} at its peak; plan.memory_gb=80 says whether that fits"
    return f"{_size(peak)} at its peak {'fits' if peak <= device else 'does NOT fit'} {_size(device)}"


def _size(count: float) -> str:
    if count != count:
        return "?"
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
