"""Benchmark sets answered by a model: one row per (set, problem, response), appended batch by batch and resumable."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol
from zlib import crc32

from delaysim.benchmarks.load import Benchmark, Item
from delaysim.errors import RunFailed, UserError
from delaysim.files import digest, finite, locked, read_json, write_json
from delaysim.grading.golds import Gold
from delaysim.grading.grader import Grader
from delaysim.grading.verdict import Verdict
from delaysim.tasks.base import UNGRADED, too_many_ungraded

SCHEMA = 1
"""Version of the folder's layout."""
KEEP = 4
"""Problems of each set whose responses are kept as token ids."""
MANIFEST, ROWS = "evaluation.json", "rows.jsonl"


@dataclass(frozen=True)
class Said:
    """One response, as the graders see it."""

    text: str
    tokens: Sequence[int]
    """Stop token included."""
    finished: bool
    """False = reached the length limit."""


class Respondent(Protocol):
    """Whoever answers: a model, or a script in a test."""

    def respond(self, items: Sequence[Item], repeat: int, keys: Sequence[tuple[int, ...]] | None) -> list[Said]:
        """`repeat` responses to each problem, in order; `keys` has one noise key per response, None = greedy."""
        ...


@dataclass(frozen=True)
class Plan:
    """What is asked of every problem."""

    samples: int
    """n, besides the greedy response."""
    problems: int | None = None
    """The first so many of each set; None = all."""
    batch: int = 64
    """Responses generated together, about."""
    mode: str = "strict"
    """How answers are found: strict | flexible."""

    @property
    def together(self) -> int:
        """Problems answered together."""
        return max(1, self.batch // max(1, self.samples))


Progress = Callable[[str, int, int, int], None]
"""Called after each batch with the set, problems done, problems in all, and the tokens just generated."""


def evaluate_benchmarks(
    benchmarks: Sequence[Benchmark],
    respondent: Respondent,
    grader: Grader,
    plan: Plan,
    rows: "RowFile",
    progress: Progress,
) -> None:
    """Answer what `rows` lacks. Raises RunFailed where the grading itself fails too often."""
    for benchmark, first, items in batches(benchmarks, plan):
        if rows.skip(len(items) * (1 + plan.samples)):
            continue
        made = _batch(benchmark.name, first, items, respondent, grader, plan)
        rows.append(made)
        progress(benchmark.name, first + len(items), _asked(benchmark, plan), sum(row["n_tokens"] for row in made))
        rows.check_graded()


def batches(benchmarks: Sequence[Benchmark], plan: Plan) -> Iterator[tuple[Benchmark, int, Sequence[Item]]]:
    """Whole problems that are answered together: the set, the place of the first, the problems."""
    for benchmark in benchmarks:
        edges = [*range(0, _asked(benchmark, plan), plan.together), _asked(benchmark, plan)]
        for start, stop in pairwise(edges):
            yield benchmark, start, benchmark.items[start:stop]


def _asked(benchmark: Benchmark, plan: Plan) -> int:
    return min(len(benchmark.items), plan.problems or len(benchmark.items))


def _batch(
    name: str, first: int, items: Sequence[Item], respondent: Respondent, grader: Grader, plan: Plan
) -> list[dict[str, Any]]:
    n = plan.samples
    greedy = respondent.respond(items, 1, None)
    keys = [(crc32(name.encode()), first + i, r) for i in range(len(items)) for r in range(1, n + 1)]
    sampled = respondent.respond(items, n, keys) if n else []
    said = [[greedy[i], *sampled[i * n : (i + 1) * n]] for i in range(len(items))]
    asked = [(item.gold, one.text, one.finished) for item, of in zip(items, said, strict=True) for one in of]
    verdicts = grader.grade_many(asked, plan.mode)
    rows = []
    for i, (item, of) in enumerate(zip(items, said, strict=True)):
        judged = verdicts[i * (1 + n) : (1 + i) * (1 + n)]
        classes = _classes(grader, item.gold, judged)
        keep = first + i < KEEP
        rows += [_row(name, item, r, *parts, keep) for r, parts in enumerate(zip(of, judged, classes, strict=True))]
    return rows


def _classes(grader: Grader, gold: Gold, verdicts: Sequence[Verdict]) -> list[int | None]:
    """Which responses to one problem say the same; None where there is no answer."""
    texts = [verdict.extracted for verdict in verdicts if verdict.extracted]
    found = iter(grader.classes(gold, texts) if texts else [])
    return [next(found) if verdict.extracted else None for verdict in verdicts]


def _row(
    name: str, item: Item, number: int, said: Said, verdict: Verdict, label: int | None, keep: bool
) -> dict[str, Any]:
    row = {
        "set": name,
        "problem": item.id,
        "cluster": item.cluster,
        "response": number,
        "greedy": number == 0,
        "score": float(verdict.score),
        "status": verdict.status,
        "method": verdict.method,
        "answer": verdict.extracted,
        "class": label,
        "n_tokens": len(said.tokens),
        "truncated": not said.finished,
    }
    return row | ({"tokens": [int(token) for token in said.tokens]} if keep else {})


# The folder.


class RowFile:
    """rows.jsonl of one evaluation: what a killed one had finished is kept, whole batches only."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = _whole_lines(path)
        self._kept = 0
        self._open = False
        self.rows: list[dict[str, Any]] = []
        """Every row so far."""

    def skip(self, count: int) -> bool:
        """Whether the next `count` rows are there already."""
        if self._open or len(self._lines) < self._kept + count:
            return False
        self.rows += map(json.loads, self._lines[self._kept : self._kept + count])
        self._kept += count
        return True

    def append(self, rows: Sequence[dict[str, Any]]) -> None:
        """Add a batch, on disk when this returns; what stood of an unfinished one goes."""
        if not self._open:
            with self._path.open("ab") as file:
                file.truncate(sum(map(len, self._lines[: self._kept])))
            self._open = True
        lines = [json.dumps(finite(row), ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows]
        with self._path.open("ab") as file:
            file.write("".join(lines).encode())
            file.flush()
            os.fsync(file.fileno())
        self.rows += rows

    def check_graded(self) -> None:
        """Raise RunFailed when more than one response in a hundred could not be graded."""
        failed = sum(row["status"] in UNGRADED for row in self.rows)
        if too_many_ungraded(failed, len(self.rows)):
            raise RunFailed(f"{self._path}: the grading of {failed} of {len(self.rows)} responses timed out or died")


def _whole_lines(path: Path) -> list[bytes]:
    if not path.exists():
        return []
    with path.open("rb") as file:
        return [line for line in file if line.endswith(b"\n")]


@contextmanager
def opened(folder: Path, identity: dict[str, Any], of: dict[str, Any] | None = None) -> Iterator[RowFile]:
    """The folder of an evaluation, new or gone on with; `of` says which run is evaluated.

    Raises UserError where it holds another one, or is in use.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "lock", wait=False) as got:
        if not got:
            raise UserError(f"another process is writing {folder}; wait for it, or give another --out")
        manifest = {"schema": SCHEMA, "identity": identity, **({"of": of} if of else {})}
        if (folder / MANIFEST).exists():
            _same(folder, read_json(folder / MANIFEST), manifest)
        else:
            write_json(folder / MANIFEST, manifest)
        yield RowFile(folder / ROWS)


def _same(folder: Path, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    one, other = found.get("identity", {}), json.loads(json.dumps(wanted["identity"]))
    if one == other and found.get("schema") == wanted["schema"]:
        return
    differ = [key for key in {**one, **other} if one.get(key) != other.get(key)] or ["schema"]
    raise UserError(f"{folder} holds another evaluation ({', '.join(differ)} differ): give another --out")


def plan_identity(plan: Plan, benchmarks: Sequence[Benchmark]) -> dict[str, Any]:
    """What decides the rows, the model apart."""
    tolerances = {b.name: max(item.gold.rel_tol for item in b.items) for b in benchmarks}
    clusters = digest({item.id: item.cluster for b in benchmarks for item in b.items})
    return {**asdict(plan), "sets": {b.name: b.digest for b in benchmarks}, "rel_tol": tolerances, "clusters": clusters}
