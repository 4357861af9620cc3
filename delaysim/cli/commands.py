"""The commands beside runs: `delaysim audit-verifier` is the function of that name in its module here. No torch."""

from collections.abc import Callable
from importlib import import_module
from keyword import iskeyword

COMMANDS = (
    "status", "resume", "theory", "check-estimator", "compare", "budget", "bias", "predict", "report", "screen",
    "timeline", "evaluate", "import", "export", "grade", "audit-verifier", "validate", "moe-noise",
)  # fmt: skip
"""What a first word can be; its module is imported only when it is."""


def command(word: str) -> Callable[[list[str]], int]:
    """From a command's name to what takes its arguments and gives the exit code."""
    name = word.replace("-", "_") + "_" * iskeyword(word)
    found: Callable[[list[str]], int] = getattr(import_module(f"delaysim.cli.{name}"), name)
    return found
