"""A trace's delays in the own count of the system whose preset it has. No torch."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from delaysim.files import read_json, write_json
from delaysim.presets import discover
from delaysim.presets.base import in_words
from delaysim.settings.config import Config


def own_count(cfg: Config, path: Path) -> list[str]:
    """What a trace says of its preset; nothing without one. The numbers also go into moments.json, by its name.

    Other presets with the same clock share the trace, and each has its numbers there.
    """
    if cfg.preset is None:
        return []
    system = discover()[cfg.preset.name]
    counts = _counts(cfg, path)
    mean, most = float(counts.mean()), int(counts.max())
    file = path / "moments.json"
    write_json(file, read_json(file) | {f"{cfg.preset.name}_mean": mean, f"{cfg.preset.name}_max": most})
    return [
        f"preset         {in_words(cfg.preset)}",
        f"               in its own count: mean {mean:.2f} {system.UNIT}, max {most}",
        f"               ({system.COUNTS})",
    ]


def _counts(cfg: Config, path: Path) -> np.ndarray[Any, Any]:
    """Of every trained group."""
    table = pq.read_table(path / "trace.parquet", columns=["update", "version"])
    update, version = (table[name].to_numpy(zero_copy_only=False) for name in ("update", "version"))
    trained = ~np.isnan(update)
    counts = discover()[cfg.preset.name].staleness(
        update[trained].astype(np.int64), version[trained].astype(np.int64), cfg.preset, cfg.B, cfg.G
    )
    return np.asarray(counts)
