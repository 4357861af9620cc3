"""prime-rl's run directory, read from what says most (PrimeIntellect-ai/prime-rl).

1. `rollouts/step_N/train/{effective,all}/traces.jsonl`: one episode a line, with group, versions, times and tokens
   (src/prime_rl/monitors/file.py; the record is Episode of PrimeIntellect-ai/verifiers, verifiers/v1/episode.py).
2. `token_exports/step_N/rank_N.jsonl`: one trained sequence a line (src/prime_rl/trainer/rl/token_export.py).
3. `metrics.jsonl`: sums per step, `off_policy/*` among them (src/prime_rl/orchestrator/orchestrator.py).

Steps count from 1: step N is update N-1, and trains weights of version N-1.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from delaysim.importing.fields import listed, name, needed, nested, number, whole
from delaysim.importing.lines import Place, Skip, Tally, objects, rows
from delaysim.importing.row import Row

PATTERNS = ("traces.jsonl", "rank_*.jsonl", "metrics.jsonl")
SYSTEM = "prime-rl"
STEP = re.compile(r"step_(\d{1,15})")


def choose(folder: Path) -> list[Path]:
    """The files of the kind that says most; of evaluations none."""
    for pattern in PATTERNS:
        found = [path for path in sorted(folder.rglob(pattern)) if "eval" not in path.relative_to(folder).parts]
        if found:
            return found
    return []


def read(files: Sequence[Path], tally: Tally) -> Iterator[Row]:
    """One row per trace, per exported sequence, or per step."""
    trained_first = sorted(files, key=lambda path: "effective" not in path.parts)
    for path in trained_first:
        kind: Callable[..., Iterable[Row]] = _step
        if path.name == "traces.jsonl":
            kind = _episode
        elif "token_exports" in path.parts or path.name.startswith("rank_"):
            kind = _sequence
        yield from rows(objects([path], tally), partial(kind, tally), tally)


def _episode(tally: Tally, place: Place, record: dict[str, Any]) -> Iterable[Row]:
    work = nested(record, "run", "work")
    if (name(work, "type") or "train") != "train":
        raise Skip("of an evaluation")
    episode = needed(name(record, "id"), "id")
    in_batch = "effective" in place.path.parts
    if not in_batch and tally.has("effective", episode):
        return []
    tally.once("effective" if in_batch else "all", episode)
    policy = nested(work, "policy")
    start, end = whole(policy, "start"), whole(policy, "end")
    if start is not None and end is not None and end < start:
        raise Skip("policy.end is before policy.start")
    update = _update(place) if in_batch else None
    if update is not None and start is not None and start > update:
        raise Skip("policy.start is after the step")
    status = "trained" if in_batch else "untrained" if record.get("ok") is True else "failed"
    group = name(nested(record, "group"), "id") or episode
    traces = [trace for trace in listed(record, "traces") if nested(trace, "agent").get("trainable") is not False]
    return [
        Row(
            group, tally.number(group), *_times(trace), _generated(trace), start, end,
            consumed_update=update, status=status,
        )
        for trace in traces
    ]  # fmt: skip


def _times(trace: dict[str, Any]) -> tuple[float | None, float | None]:
    timing = nested(trace, "timing")
    ends = [number(nested(timing, part), "end") for part in ("agent", "finalize", "scoring")]
    return number(timing, "start"), max((end for end in ends if end), default=None)


def _generated(trace: dict[str, Any]) -> int | None:
    counts = [whole(nested(call, "usage"), "completion_tokens") for call in listed(trace, "calls")]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _update(place: Place) -> int:
    steps = [int(found[1]) for part in place.path.parts if (found := STEP.fullmatch(part))]
    if not steps or steps[-1] < 1:
        raise Skip("no step_N from 1 in the path")
    return steps[-1] - 1


def _sequence(tally: Tally, place: Place, record: dict[str, Any]) -> Iterable[Row]:
    exported = whole(record, "export_step")
    step = needed(whole(record, "step") if exported is None else exported, "step")
    mask = record.get("loss_mask")
    if not isinstance(mask, list) or not all(isinstance(kept, bool) for kept in mask):
        raise Skip("loss_mask is not a list of true and false")
    if step < 1:
        raise Skip("step is below 1")
    sequence = whole(record, "export_sequence_idx")
    tally.once(name(record, "run_id"), step, whole(record, "rank"), sequence)
    return [Row(sample=sequence, tokens=sum(mask), consumed_update=step - 1, status="trained")]


def _step(tally: Tally, place: Place, record: dict[str, Any]) -> Iterable[Row]:
    if "off_policy/mean" not in record:
        return []  # the trainer and other parts write lines of their own
    step = needed(whole(record, "step"), "step")
    if step < 1:
        raise Skip("step is below 1")
    tally.once("step", step)
    return [
        Row(
            consumed_update=step - 1,
            reported_mean=number(record, "off_policy/mean"),
            reported_max=number(record, "off_policy/max"),
            reported_in_flight=number(record, "off_policy/in_flight/mean"),
            reported_in_queue=number(record, "off_policy/in_queue/mean"),
            reported_dropped=whole(record, "off_policy/dropped"),
        )
    ]
