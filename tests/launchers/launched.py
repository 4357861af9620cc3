"""A grid as the command line runs it under a launcher."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from settings import SMALL, fingerprint

GRID = ("D=0,2", "seed=0,1")
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_worker_niceness": "0",
}
"""Ray reports nothing, stays on the loopback, and its workers do not give way to everything else."""


def needs(*modules):
    """Skip where an extra is not installed."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} not installed: make launchers")


def hears_ctrl_c():
    """A shell lets what it starts in the background ignore Ctrl-C, and so would what that starts."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def start(folder, *words, grid=GRID):
    """Start a sweep in a directory."""
    command = [sys.executable, "-m", "delaysim", "-m", "+suite=fixed_delay", *grid]
    last = {word.split("=")[0]: word for word in (*SMALL, *words)}
    return subprocess.Popen(
        [*command, *last.values()], cwd=folder, env=os.environ | ENVIRONMENT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=hears_ctrl_c,
    )  # fmt: skip


def finished(process, code=0, seconds=300):
    """What it printed; it ended with this code."""
    said, errors = process.communicate(timeout=seconds)
    assert process.returncode == code, said + errors
    return said


def rows_of(folder):
    """What the cells below a directory left, by run id."""
    return {path.name: fingerprint(path) for path in sorted(Path(folder).glob("runs/fixed_delay/*"))}


def typed_in(folder):
    """The commands that the legs of the cells below a directory name."""
    manifests = [json.loads(path.read_text()) for path in Path(folder).glob("runs/fixed_delay/*/manifest.json")]
    return {leg["command"].partition(" D=")[0] for manifest in manifests for leg in manifest["legs"]}
