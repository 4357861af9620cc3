"""`delaysim resume`. No torch until the run starts."""

import argparse
from dataclasses import replace
from pathlib import Path

from delaysim.run.progress import Display
from delaysim.settings.configfile import load_config


def resume(arguments: list[str]) -> int:
    """`delaysim resume RUN_DIR`: go on with an interrupted run from its last checkpoint."""
    from delaysim.cli.compose import finish_run

    parser = argparse.ArgumentParser(prog="delaysim resume", description="Go on with an interrupted run.")
    parser.add_argument("run", help="its run directory")
    parser.add_argument("--display", default="auto", choices=("auto", "live", "plain", "quiet"))
    options = parser.parse_args(arguments)
    path = Path(options.run)
    cfg = replace(load_config(path / "config.yaml"), resume="must")
    return finish_run(cfg, path, Display(options.display))
