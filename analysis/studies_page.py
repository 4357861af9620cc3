"""Page and figure of a study, from its committed file alone."""

from pathlib import Path

RESULTS = Path(__file__).parent.parent / "docs/results"


def write(name: str, table: Path, command: str) -> None:
    """docs/results/NAME.md and its figure."""
