"""Reading sets from local JSON-lines files or from the hub, rows and bytes checked. Raises UserError throughout."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from delaysim.benchmarks.clusters import clusters
from delaysim.benchmarks.sets import SETS, SIX, BenchmarkSet, Hub
from delaysim.data import read_jsonl
from delaysim.errors import UserError
from delaysim.files import digest, file_digest, read_json
from delaysim.grading.golds import Gold, GoldError, make_gold

Row = dict[str, Any]
NEEDED = ("id", "problem", "answer")


@dataclass(frozen=True)
class Item:
    """One problem of a set, ready to be asked and graded."""

    id: str
    problem: str
    gold: Gold
    cluster: str = ""


@dataclass(frozen=True)
class Benchmark:
    """One set, read."""

    name: str
    digest: str
    """Hash of its rows."""
    items: tuple[Item, ...]
    left_out: tuple[str, ...] = ()
    """Ids of problems whose gold cannot be used."""


def load_benchmarks(
    names: Sequence[str], folder: Path | None, given: Path | None = None, rel_tol: Mapping[str, float] | None = None
) -> list[Benchmark]:
    """Sets by name from `folder`, else from the hub, or by the path of a .jsonl file, whose stem is then the name.

    Clusters come from the file `given` (a JSON object, id to cluster), else by the rule of `clusters`, over all sets
    asked for. `rel_tol` holds a relative tolerance by set.
    """
    known = [_known(name) for name in names]
    labels = [Path(name).stem if isinstance(name, str) else name.name for name in known]
    if doubled := [label for label in labels if labels.count(label) > 1]:
        raise UserError(f"--benchmarks: {doubled[0]} stands twice")
    for label in rel_tol or {}:
        if label not in labels:
            raise UserError(f"--rel-tol {label}: not among the sets; choose one of {', '.join(labels)}")
    rows = [read_set(one, folder) for one in known]
    _ids_differ(labels, rows)
    grouped = _clusters([row for of in rows for row in of], given)
    spare = [one.hub.unusable if folder is None and not isinstance(one, str) else 0 for one in known]
    return [
        _benchmark(label, of, grouped, (rel_tol or {}).get(label, 0.0), may_lack)
        for label, of, may_lack in zip(labels, rows, spare, strict=True)
    ]


def _ids_differ(labels: Sequence[str], rows: Sequence[Sequence[Row]]) -> None:
    owner: dict[str, str] = {}
    for label, of in zip(labels, rows, strict=True):
        for row in of:
            if (other := owner.setdefault(row["id"], label)) != label:
                raise UserError(f"--benchmarks: the id {row['id']!r} stands in {other} and in {label}; rename one")


def names_of(text: str) -> list[str]:
    """`all`, or names and files separated by commas."""
    return list(SIX) if text == "all" else [name.strip() for name in text.split(",") if name.strip()]


def read_set(one: BenchmarkSet | str, folder: Path | None) -> list[Row]:
    """The rows of a known set, or of a user's own file, with id, problem and answer as texts."""
    if isinstance(one, str):
        return _texts(one, read_jsonl(one, NEEDED))
    if folder is None:
        return _texts(one.hub.id, from_hub(one.hub))
    path = folder / f"{one.name}.jsonl"
    if not path.is_file():
        raise UserError(f"{folder} has no {path.name}; put it there, or leave --data out to take {one.hub.id}")
    rows = _texts(str(path), read_jsonl(path, NEEDED))
    if len(rows) != one.rows:
        raise UserError(f"{path} has {len(rows)} rows, the set {one.name} has {one.rows}; {OWN}")
    if one.sha256 is not None and file_digest(path) != one.sha256:
        raise UserError(f"{path} is not the known {one.name}: its sha256 does not begin with {one.sha256[:12]}; {OWN}")
    return rows


OWN = "a file of your own is given another name and its path: --benchmarks FILE.jsonl"


def _known(name: str) -> BenchmarkSet | str:
    if name.endswith(".jsonl"):
        return name
    if name not in SETS:
        raise UserError(f"--benchmarks {name}: no such set; choose all, some of {', '.join(SETS)}, or a .jsonl file")
    return SETS[name]


def _texts(where: str, rows: Sequence[Row]) -> list[Row]:
    seen: set[str] = set()
    for line, row in enumerate(rows, 1):
        if not isinstance(row["problem"], str):
            raise UserError(f"{where}, line {line}: the problem is not a text")
        row["id"], row["answer"] = str(row["id"]), _text(row["answer"])
        if row["id"] in seen:
            raise UserError(f"{where}, line {line}: the id {row['id']!r} stands twice")
        seen.add(row["id"])
    return list(rows)


def _text(answer: Any) -> str:
    """27.0 and "27.0" as 27: some sets store whole numbers as floats."""
    return re.sub(r"^(-?[0-9]+)\.0$", r"\1", str(answer))


def _benchmark(label: str, rows: Sequence[Row], grouped: Mapping[str, str], rel_tol: float, may_lack: int) -> Benchmark:
    items, left_out = [], []
    for row in rows:
        try:
            gold = gold_of(label, row, rel_tol)
        except UserError:
            left_out.append(row["id"])
            if len(left_out) > may_lack:
                raise
            continue
        items.append(Item(row["id"], row["problem"], gold, grouped.get(row["id"], row["id"])))
    return Benchmark(label, digest(rows), tuple(items), tuple(left_out))


def gold_of(where: str, row: Row, rel_tol: float = 0.0) -> Gold:
    """The typed gold of a row. Raises UserError that names the row."""
    try:
        return make_gold(
            row["answer"], id=row["id"], problem=row["problem"], answer_type=row.get("answer_type"),
            multiple=bool(row.get("is_multiple_answer")), unit=row.get("unit") or None,
            tolerance=_number(row.get("tolerance")), rel_tol=rel_tol,
        )  # fmt: skip
    except GoldError as error:
        raise UserError(f"{where}, {row['id']}: the answer {row['answer'][:60]!r} cannot be used: {error}") from None


def _number(text: Any) -> float | None:
    """The tolerance of a row; some sets leave it empty or write several, of which none is meant for one answer."""
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


def _clusters(rows: Sequence[Row], given: Path | None) -> Mapping[str, str]:
    if given is None:
        return clusters({row["id"]: row["problem"] for row in rows})
    try:
        found = read_json(given)
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {given}: {error}") from None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise UserError(f"{given}: not a JSON object of id to cluster")
    return found


# The hub.

LOCAL = "give local files (--data DIR, task.path=FILE)"


def from_hub(hub: Hub) -> list[Row]:
    """The rows of a hub data set, as id, problem, answer and what else the grading reads."""
    rows = [row for path in _hub_files(hub) for row in _read(path)]
    if len(rows) != hub.rows:
        raise UserError(
            f"{hub.id} ({hub.files}) has {len(rows)} rows instead of {hub.rows}: give local files, --data DIR"
        )
    columns = [hub.problem, hub.answer]
    if lacking := [name for name in columns if name not in rows[0]]:
        raise UserError(f"{hub.id}: no column {lacking[0]!r}; the columns are {', '.join(rows[0])}")
    return [_from_columns(hub, place, row) for place, row in enumerate(rows)]


def _hub_files(hub: Hub) -> list[Path]:
    from huggingface_hub import snapshot_download

    try:
        folder = Path(snapshot_download(hub.id, repo_type="dataset", allow_patterns=[hub.files]))
    except Exception as error:  # the hub's client raises all kinds
        why = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise UserError(f"{hub.id} is neither on this machine nor to be had ({why}): {LOCAL}") from error
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.suffix in READERS)
    found = [folder / name for name in names if fnmatch(name, hub.files)]
    if not found:
        raise UserError(f"{hub.id} has no file {hub.files}: {LOCAL}")
    return found


def _json_rows(path: Path) -> list[Row]:
    text = path.read_text("utf-8-sig").lstrip()
    return read_json(path) if text.startswith("[") else read_jsonl(path, ())


def _parquet_rows(path: Path) -> list[Row]:
    from pyarrow import parquet

    return list(parquet.read_table(path).to_pylist())


READERS = {".jsonl": _json_rows, ".json": _json_rows, ".parquet": _parquet_rows}


def _read(path: Path) -> Iterable[Row]:
    try:
        return READERS[path.suffix](path)
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {error}") from error


def _from_columns(hub: Hub, place: int, row: Row) -> Row:
    extra = {name: row.get(name) for name in ("answer_type", "is_multiple_answer", "unit")}
    if hub.tolerance is not None:
        extra["tolerance"] = row.get(hub.tolerance)
    answer = FORMS[hub.form](row[hub.answer])
    key = hub.key.format_map({**row, "row": place})
    return {"id": key, "problem": row[hub.problem], "answer": answer, **extra}


def _after_hash(text: str) -> str:
    return text.rpartition("####")[2].strip().replace(",", "")


def _last_boxed(text: str) -> str:
    from delaysim.grading.extract import extract

    found = extract(text)
    return found.text if found is not None and found.method == "boxed" else ""


def _first(values: Any) -> str:
    return str(values[0]) if values else ""


FORMS: dict[str, Any] = {"plain": str, "hash": _after_hash, "boxed": _last_boxed, "first": _first}
