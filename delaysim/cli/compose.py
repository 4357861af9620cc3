"""The Hydra side of the command line: compose, check, and hand each configuration to its mode. No torch."""

import atexit
import os
import shutil
import sys
import tempfile
import textwrap
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from delaysim.cli.hydra_errors import translate
from delaysim.cli.plan import Planned, plan_one, print_plan
from delaysim.errors import UserError
from delaysim.estimators import discover
from delaysim.run.progress import Display, plain_console
from delaysim.run.runner import Ended
from delaysim.settings.checks import check
from delaysim.settings.config import SHARED_RECIPE, Config, register
from delaysim.settings.identity import run_path
from delaysim.settings.places import conf_dir


@dataclass
class Session:
    """What one command line did, cell by cell."""

    ended: list[Ended] = field(default_factory=list)
    errors: list[tuple[str, UserError]] = field(default_factory=list)
    planned: list[Planned] = field(default_factory=list)


session = Session()
console = plain_console()


@cache
def scratch() -> str:
    """A folder for Hydra's own files, gone at exit: a run directory is complete without them."""
    folder = tempfile.mkdtemp(prefix="delaysim-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def first(*values: Any) -> Any:
    """The first value that is not null: a short name over a published default."""
    return next(value for value in values if value is not None)


def one_plus(value: Any) -> Any:
    """1 + a number, null for null: `eps` as an absolute cap."""
    return None if value is None else 1 + float(value)


def engine_dtype(precision: str) -> str | None:
    """Precision of a vLLM engine's weights beside a learner of this one; null = the model's."""
    return "bfloat16" if precision == "bf16_autocast" else None


def recipe(kind: str, estimator: str, what: str) -> str:
    """The advantage or aggregation of the chosen recipe."""
    module = discover().get(estimator) if kind == "published" else None
    return str(getattr(SHARED_RECIPE if module is None else module.PUBLISHED, what))


def choices() -> str:
    """The groups of conf/ and the choices in each, for --help."""
    folders = [folder for folder in sorted(conf_dir().iterdir()) if folder.is_dir() and folder.name != "hydra"]
    names = {folder.name: sorted(path.stem for path in folder.glob("*.yaml")) for folder in folders}
    return "\n".join(
        textwrap.fill(f"{group:<10} {', '.join(found)}", 79, initial_indent="  ", subsequent_indent=" " * 13)
        for group, found in names.items()
        if found
    )


def prepare() -> None:
    """Register schemas and resolvers; needed in every process that composes a configuration."""
    OmegaConf.register_new_resolver("choices", choices, replace=True)
    OmegaConf.register_new_resolver("scratch", scratch, replace=True)
    OmegaConf.register_new_resolver("first", first, replace=True)
    OmegaConf.register_new_resolver("one_plus", one_plus, replace=True)
    OmegaConf.register_new_resolver("recipe", recipe, replace=True)
    OmegaConf.register_new_resolver("engine_dtype", engine_dtype, replace=True)
    register()


prepare()


@hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="config")
def compose_and_run(composed: DictConfig) -> None:
    """Hydra's task: one run, or one cell of a sweep."""
    name = " ".join(HydraConfig.get().overrides.task)
    try:
        _one(to_config(composed), sweep=HydraConfig.get().mode == RunMode.MULTIRUN)
    except UserError as error:  # in a sweep the other cells go on; Hydra would print a word of its own
        session.errors.append((name, error))


def to_config(composed: DictConfig) -> Config:
    """The composed configuration as dataclasses, checked. Raises UserError."""
    if composed.get("suite_name") is None:
        names = "+suite=fixed_delay, +suite=simulated_async, +suite=no_delay, +suite=measured"
        raise UserError(f"no suite chosen: add one of {names}")
    try:
        cfg = OmegaConf.to_object(composed)
    except OmegaConfBaseException as error:
        raise UserError(translate(error)) from error
    assert isinstance(cfg, Config)
    check(cfg)
    return cfg


def _one(cfg: Config, sweep: bool) -> None:
    if cfg.mode == "plan":
        session.planned.append(plan_one(cfg))
    elif cfg.mode == "trace":
        _trace(cfg)
    elif sweep:
        _train_cell(cfg)
    else:
        session.ended.append(show_run(cfg, run_path(cfg), Display(cfg.display)))


def show_run(cfg: Config, path: Path, display: Display) -> Ended:
    """Train, then print the closing summary and what to try next."""
    from delaysim.run.runner import train
    from delaysim.run.summary import next_commands, read_summary

    try:
        ended = train(cfg, path, display)
    finally:
        display.close()
    if ended.state == "skipped":
        display.say("this run is finished; resume=never runs it again")
    if ended.exit_code == 0:
        heads = ["next           ", "               ", "               "]
        commands = [head + command for head, command in zip(heads, next_commands(cfg), strict=True)]
        for line in [*read_summary(path).lines(), *commands]:
            display.say(line)
    return ended


def finish_run(cfg: Config, path: Path, display: Display) -> int:
    """One run in its own directory; its exit code. Raises UserError where it did not end well."""
    ended = show_run(cfg, path, display)
    if ended.exit_code:
        raise _as_error(ended)
    return 0


def _trace(cfg: Config) -> None:
    from delaysim.run.tracemode import trace

    trace(cfg, run_path(cfg), console)


def _train_cell(cfg: Config) -> None:
    from delaysim.run.cells import run_cell
    from delaysim.run.summary import cell_line

    path = run_path(cfg)
    ended = run_cell(cfg, path)
    session.ended.append(ended)
    text = f"{path.name}: {ended.state}: {ended.message}" if ended.exit_code else cell_line(path)
    console.print(
        f"[{HydraConfig.get().job.num}] {text}{' (finished before)' * (ended.state == 'skipped')}", markup=False
    )
    if ended.exit_code == 130:
        raise KeyboardInterrupt


def run() -> int:
    """Run Hydra on sys.argv; the exit code. Raises UserError where a single run did not end well."""
    compose_and_run()
    if session.planned:
        print_plan(session.planned, console)
    failed = [ended for ended in session.ended if ended.exit_code]
    if len(session.ended) + len(session.errors) + len(session.planned) == 1:
        for error in [*(error for _, error in session.errors), *map(_as_error, failed)]:
            raise error
    for ended in failed:
        console.print(f"failed: {ended.path}: {ended.message}", markup=False)
    for name, error in session.errors:
        console.print(f"not run: {name}: {error}", markup=False)
    return max([ended.exit_code for ended in failed], default=2 if session.errors else 0)


def run_translated(arguments: list[str]) -> int:
    """Run Hydra's main on the arguments; its own errors become UserErrors."""
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra then raises instead of printing a traceback and exiting
    flags = [word for word in arguments if word in ("-m", "--multirun")]  # argparse wants them before the settings
    settings = [word for word in arguments if word not in flags]
    sys.argv = ["delaysim", *flags, *(settings or ["--help"])]
    try:
        return run()
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(translate(error)) from error


def _as_error(ended: Ended) -> UserError:
    error = UserError(ended.message or ended.state)
    error.exit_code = ended.exit_code
    return error
