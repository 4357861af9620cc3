"""vLLM outputs as JSON lines: `RequestOutput`s (`outputs`), responses of its server (`choices`) or one output a line.

`weight_versions` are the spans of `CompletionOutput` (vllm/outputs.py, 0.32): tokens [start, end) were sampled with
weights labelled `version`. vLLM does not know updates; a loop that writes `consumed_update` or `group_id` beside an
output has them read.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from delaysim.importing.fields import listed, moment, name, needed, whole
from delaysim.importing.lines import Place, Skip, Tally, objects, rows
from delaysim.importing.row import Row

PATTERNS = ("*.jsonl", "*.ndjson")
SYSTEM = "vLLM"
LABEL = re.compile(r"\D*(\d{1,15})")
"""A label that ends in the version's number."""


class _Versions(NamedTuple):
    first: int
    last: int
    mean: float
    tokens: int


def read(files: Sequence[Path], tally: Tally) -> Iterator[Row]:
    """One row per output."""
    return rows(objects(files, tally), partial(_rows, tally), tally)


def _rows(tally: Tally, place: Place, record: dict[str, Any]) -> Iterable[Row]:
    several = listed(record, "outputs") or listed(record, "choices")
    return [_row(tally, {**record, **output}, order) for order, output in enumerate(several or [record])]


def _row(tally: Tally, output: dict[str, Any], order: int) -> Row:
    index = whole(output, "index")
    request = name(output, "group_id") or name(output, "request_id") or name(output, "id")
    sample = order if index is None else index
    versions = _versions(output)
    if request is not None:
        tally.once(request, sample)
    return Row(
        group_id=request,
        sample=sample,
        submit_t=moment(output, "submit_t"),
        done_t=moment(output, "done_t"),
        tokens=_tokens(output, versions),
        version_start=versions.first if versions else None,
        version_end=versions.last if versions else None,
        version_mean=versions.mean if versions else None,
        consumed_update=whole(output, "consumed_update"),
        status=_status(output),
    )


def _versions(output: dict[str, Any]) -> _Versions | None:
    spans = listed(output, "weight_versions")
    if not spans:
        return None
    place, weighted, numbers = 0, 0, []
    for span in spans:
        start, end = (needed(whole(span, key), f"weight_versions: {key}") for key in ("start", "end"))
        if start != place or end < start:
            raise Skip("weight_versions leave tokens out")
        numbers.append(_label(span))
        weighted, place = weighted + numbers[-1] * (end - start), end
    return _Versions(numbers[0], numbers[-1], weighted / place if place else float(numbers[-1]), place)


def _label(span: dict[str, Any]) -> int:
    found = LABEL.fullmatch(needed(name(span, "version"), "weight_versions: version"))
    if found is None:
        raise Skip("weight_versions: a label that does not end in a number")
    return int(found[1])


def _tokens(output: dict[str, Any], versions: _Versions | None) -> int | None:
    ids = output.get("token_ids")
    if ids is None:
        return versions.tokens if versions else whole(output, "tokens")
    if not isinstance(ids, list):
        raise Skip("token_ids is not a list")
    if versions and versions.tokens != len(ids):
        raise Skip("weight_versions and token_ids differ in length")
    return len(ids)


def _status(output: dict[str, Any]) -> str | None:
    if "finish_reason" not in output:
        return None
    return {None: "pending", "abort": "dropped"}.get(name(output, "finish_reason"), "accepted")
