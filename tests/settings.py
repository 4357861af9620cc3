"""Configurations and runs for tests, composed as the command line composes them."""

import json
from pathlib import Path

from hydra import compose, initialize_config_dir

from delaysim.cli.compose import to_config
from delaysim.run.progress import Display
from delaysim.run.runner import train
from delaysim.settings.places import conf_dir

SMALL = (
    "model.sft_steps=60", "updates=8", "B=2", "G=4", "evaluation.problems=8", "evaluation.every=4",
    "checkpoint.every=3", "sampler.chunk=1",
)  # fmt: skip


def make_config(*overrides, suite="fixed_delay"):
    """A checked configuration; later overrides win."""
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        return to_config(compose("config", [f"+suite={suite}", *overrides]))


def small_config(*overrides, suite="fixed_delay"):
    """A run of about a second on a base of 60 fine-tuning steps."""
    last = {text.split("=")[0].lstrip("+"): text for text in (*SMALL, *overrides)}
    return make_config(*last.values(), suite=suite)


def run(cfg, path):
    """Train in `path`, quietly."""
    return train(cfg, Path(path), Display("quiet"))


def rows(path, name, clocks=False):
    """Rows of an append-only file, without the wall-clock columns unless asked."""
    found = [json.loads(line) for line in (Path(path) / f"{name}.jsonl").read_text().splitlines()]
    return found if clocks else [{k: v for k, v in row.items() if not k.endswith("_s")} for row in found]


def fingerprint(path):
    """Everything a run's result is made of, as bytes: rows without wall-clock columns, trace, moments, weights."""
    path = Path(path)
    text = {name: json.dumps(rows(path, name)).encode() for name in ("launches", "updates", "groups", "evals")}
    files = {name: (path / name).read_bytes() for name in ("trace.parquet", "moments.json", "ratios.bin")}
    (weights,) = path.glob("checkpoints/*/model.safetensors")
    (optimiser,) = path.glob("checkpoints/*/optimiser.safetensors")
    return {**text, **files, "weights": weights.read_bytes(), "optimiser": optimiser.read_bytes()}
