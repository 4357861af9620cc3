"""What a manifest says about where a run came from. Imports no torch."""

import os
import platform
import shlex
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

from delaysim import __version__
from delaysim.files import digest

PACKAGES = ("simpy", "numpy", "torch", "transformers", "hydra-core", "pandas", "pyarrow", "vllm")
COMMAND = "DELAYSIM_COMMAND"
"""Environment variable that tells workers what was typed."""


def code() -> dict[str, Any]:
    """Version of this code: the release, and in a git checkout the commit and a hash of what differs from it."""
    root = Path(__file__).parents[2]
    commit = _git(root, "rev-parse", "HEAD") if (root / ".git").exists() else None
    diff = _git(root, "diff", "HEAD") if commit else None
    return {"version": __version__, "commit": commit, "diff": digest(diff) if diff else None}


def leg(from_update: int, threads: int) -> dict[str, Any]:
    """One start of a run: when, by which command, on what."""
    return {
        "from_update": from_update,
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": command(),
        "threads": threads,
        "pid": os.getpid(),
        "machine": machine(),
        "packages": packages(),
    }


def command() -> str:
    """What was typed: in a launcher's worker, whose own arguments are the launcher's, where the sweep was started."""
    program = Path(sys.argv[0]).name
    words = ["delaysim"] if program in ("delaysim", "__main__.py") else ["python", program]
    return os.environ.get(COMMAND) or shlex.join([*words, *sys.argv[1:]])


def machine() -> dict[str, Any]:
    """The computer, as far as it bears on speed and on rounding."""
    found = {"host": platform.node(), "cpu": cpu(), "cores": os.cpu_count(), "python": platform.python_version()}
    node = os.environ.get("DELAYSIM_NODE")
    return found if node is None else found | {"ray_node": node}


def cpu() -> str:
    """The processor's name."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def packages() -> dict[str, str]:
    """Installed versions of the packages that bear on results."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _git(root: Path, *command: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(root), *command], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
