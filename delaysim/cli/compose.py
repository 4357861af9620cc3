"""The Hydra side of the command line: compose, check, and hand each configuration to its mode. No torch."""

import atexit
import os
import shlex
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Callable
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
from delaysim.cli.plan import plan_one
from delaysim.cli.session import Outcome, as_error, cell_text, session
from delaysim.errors import UserError
from delaysim.estimators import discover
from delaysim.run.progress import Display, plain_console
from delaysim.run.provenance import COMMAND
from delaysim.run.runner import Ended
from delaysim.settings.checks import check
from delaysim.settings.config import SHARED_RECIPE, Config, register
from delaysim.settings.identity import run_path
from delaysim.settings.places import conf_dir
from delaysim.settings.preset import SUITE, own

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


def groups(responses: int | None, group: int) -> int:
    """Groups per update that make up so many responses; by default 8."""
    return 8 if responses is None else max(1, int(responses) // max(1, int(group)))


def one_plus(value: Any) -> Any:
    """1 + a number, null for null: `eps` as an absolute cap."""
    return None if value is None else 1 + float(value)


def engine_dtype(precision: str) -> str | None:
    """Precision of a vLLM engine's weights beside a learner of this one; null = the model's."""
    return "bfloat16" if precision == "bf16_autocast" else None


def of_preset(number: str, *, _root_: DictConfig) -> Any:
    """A number of the clock as the chosen preset makes it of its knobs."""
    return own(number, OmegaConf.to_object(_root_.preset), _root_.B, _root_.G)


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
    OmegaConf.register_new_resolver("groups", groups, replace=True)
    OmegaConf.register_new_resolver("one_plus", one_plus, replace=True)
    OmegaConf.register_new_resolver("own", of_preset, replace=True)
    OmegaConf.register_new_resolver("recipe", recipe, replace=True)
    OmegaConf.register_new_resolver("engine_dtype", engine_dtype, replace=True)
    register()


prepare()


@hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="config")
def compose_and_run(composed: DictConfig) -> Outcome:
    """Hydra's task."""
    return run_job(composed)


def run_job(composed: DictConfig) -> Outcome:
    """One run; or, where a launcher of Hydra's calls it in a worker, one cell of a sweep."""
    words = " ".join(HydraConfig.get().overrides.task)
    if HydraConfig.get().mode == RunMode.MULTIRUN:
        return tried(lambda: train_cell(words, to_config(composed)))
    return session.tell(words, tried(lambda: run_here(to_config(composed))))


def tried(work: Callable[[], Outcome]) -> Outcome:
    """How it went; an error of the user's is an outcome too: in a sweep the other cells go on."""
    try:
        return work()
    except UserError as error:
        return error


def train_cell(words: str, cfg: Config) -> Outcome:
    """Train one cell in a process of its own and print how it ended."""
    from delaysim.run.cells import run_cell

    answer = tried(lambda: run_cell(cfg, run_path(cfg)))
    console.print(cell_text(words, answer), markup=False)
    return answer


def to_config(composed: DictConfig) -> Config:
    """The composed configuration as dataclasses, checked. Raises UserError."""
    if composed.get("suite_name") is None and composed.get("preset") is not None:
        composed.suite_name = SUITE
    if composed.get("suite_name") is None:
        names = (
            "+suite=fixed_delay, +suite=simulated_async, +suite=no_delay, +suite=measured, +suite=replay, +preset=NAME"
        )
        raise UserError(f"no suite chosen: add one of {names}")
    try:
        cfg = OmegaConf.to_object(composed)
    except OmegaConfBaseException as error:
        raise UserError(translate(error)) from error
    assert isinstance(cfg, Config)
    check(cfg)
    return cfg


def run_here(cfg: Config) -> Outcome:
    """Plan, trace or train in this process."""
    if cfg.mode == "plan":
        return plan_one(cfg)
    if cfg.mode == "trace":
        _trace(cfg)
        return None
    return show_run(cfg, run_path(cfg), Display(cfg.display))


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
        raise as_error(ended)
    return 0


def _trace(cfg: Config) -> None:
    from delaysim.run.tracemode import trace

    trace(cfg, run_path(cfg), console)


def run() -> int:
    """Run Hydra on sys.argv; the exit code. Raises UserError where a single run did not end well."""
    compose_and_run()
    return session.close(console)


def run_translated(arguments: list[str]) -> int:
    """Run Hydra's main on the arguments; its own errors become UserErrors."""
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra then raises instead of printing a traceback and exiting
    flags = [word for word in arguments if word in ("-m", "--multirun")]  # argparse wants them before the settings
    settings = [word for word in arguments if word not in flags]
    sys.argv = ["delaysim", *flags, *(settings or ["--help"])]
    os.environ[COMMAND] = shlex.join(sys.argv)
    try:
        return run()
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(translate(error)) from error
