"""What trackers wrote, read back: {step: {name: value}}, and a ValueError where a step has one name twice."""

import json
import sqlite3
import struct
from pathlib import Path

BLOCK, HEADER = 32768, 7


def tensorboard(path):
    """Event files of a run directory, by TensorBoard's own reader."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(Path(path) / "tensorboard"), size_guidance={"scalars": 0}).Reload()
    tags = events.Tags()["scalars"]
    return merged((e.step, {tag: e.value}) for tag in tags for e in events.Scalars(tag))


def wandb(path):
    """Every leg's offline file of a run directory: W&B's records in a log of LevelDB's format."""
    from wandb.proto.wandb_internal_pb2 import Record

    rows = []
    for file in sorted(Path(path).glob("wandb/offline-run-*/*.wandb")):
        for data in records(file.read_bytes()):
            record = Record.FromString(data)
            if record.WhichOneof("record_type") == "history":
                items = {".".join(i.nested_key) or i.key: json.loads(i.value_json) for i in record.history.item}
                rows.append((record.history.step.num, {k: v for k, v in items.items() if not k.startswith("_")}))
    return merged(rows)


def records(data):
    """The records of a log: crc, length, kind, data; kinds 2 to 4 are parts of one that crosses a block."""
    assert data[:4] == b":W&B"
    at, parts = HEADER, b""
    while at + HEADER <= len(data):
        if BLOCK - at % BLOCK < HEADER:
            at += BLOCK - at % BLOCK
        _, length, kind = struct.unpack("<IHB", data[at : at + HEADER])
        at += HEADER + length
        parts += data[at - length : at]
        if kind in (1, 4):
            yield parts
            parts = b""


def trackio(folder):
    """The database of the project delaysim: {run: {step: ...}}."""
    with sqlite3.connect(Path(folder) / "delaysim.db") as database:
        found = database.execute("SELECT run_name, run_id, step, metrics FROM metrics ORDER BY id").fetchall()
    runs = {row[0]: [] for row in found}
    assert len({row[1] for row in found}) == len(runs)
    for name, _, step, metrics in found:
        runs[name].append((step, json.loads(metrics)))
    return {name: merged(rows) for name, rows in runs.items()}


def merged(rows):
    """Values by step and name."""
    steps = {}
    for step, values in rows:
        if twice := steps.setdefault(step, {}).keys() & values.keys():
            raise ValueError(f"step {step} has {sorted(twice)} twice")
        steps[step].update(values)
    return steps
