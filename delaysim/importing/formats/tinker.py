"""The tinker cookbook: `iteration_*/*_rollout_summaries.jsonl` (tinker_cookbook/rl/rollout_logging.py).

A record is one trajectory that was trained on. There are lengths, versions and updates, no times; groups that were
discarded as too old are not in the files.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from delaysim.importing.fields import listed, name, needed, whole
from delaysim.importing.lines import Place, Skip, Tally, objects, rows
from delaysim.importing.row import Row

PATTERNS = ("*_rollout_summaries.jsonl",)
SYSTEM = "tinker"


def read(files: Sequence[Path], tally: Tally) -> Iterator[Row]:
    """One row per training trajectory."""
    return rows(objects(files, tally), partial(_row, tally), tally)


def _row(tally: Tally, place: Place, record: dict[str, Any]) -> Iterable[Row]:
    if not (name(record, "split") or "train").startswith("train"):
        raise Skip("of an evaluation")
    update = needed(whole(record, "iteration"), "iteration")
    group = needed(whole(record, "group_idx"), "group_idx")
    sample = needed(whole(record, "traj_idx"), "traj_idx")
    version = whole(record, "sampling_client_step")
    if version is not None and version > update:
        raise Skip("sampling_client_step is after iteration")
    tokens = sum(needed(whole(step, "ac_len"), "ac_len") for step in listed(record, "steps"))
    tally.once(update, group, sample)
    return [
        Row(
            f"{update}/{group}", sample, tokens=tokens, version_start=version, version_end=version,
            consumed_update=update, status="trained",
        )
    ]  # fmt: skip
