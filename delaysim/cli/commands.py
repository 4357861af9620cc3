"""The commands beside runs by name, and `resume`. No torch until a run starts."""

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from delaysim.cli.audit_verifier import audit_verifier
from delaysim.cli.bias import bias
from delaysim.cli.budget import budget
from delaysim.cli.check_estimator import check_estimator
from delaysim.cli.compare import compare
from delaysim.cli.evaluate import evaluate
from delaysim.cli.export import export
from delaysim.cli.grade import grade
from delaysim.cli.import_ import import_
from delaysim.cli.predict import predict
from delaysim.cli.report import report
from delaysim.cli.screen import screen
from delaysim.cli.status import status
from delaysim.cli.theory import theory
from delaysim.cli.timeline import timeline
from delaysim.cli.validate import validate
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


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "status": status,
    "resume": resume,
    "theory": theory,
    "check-estimator": check_estimator,
    "compare": compare,
    "budget": budget,
    "bias": bias,
    "predict": predict,
    "report": report,
    "screen": screen,
    "timeline": timeline,
    "export": export,
    "evaluate": evaluate,
    "import": import_,
    "grade": grade,
    "audit-verifier": audit_verifier,
    "validate": validate,
}
