"""Where the configuration files are, in a checkout and in an installed wheel. No torch."""

from pathlib import Path


def conf_dir() -> Path:
    """The checkout's conf/ beside the package, else the copy inside the wheel."""
    package = Path(__file__).parent.parent
    beside = package.parent / "conf"
    in_checkout = (beside / "config.yaml").exists() and (package.parent / "pyproject.toml").exists()
    return beside if in_checkout else package / "conf"
