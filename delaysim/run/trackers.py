"""The trackers that a run can write to, each behind the same two calls. Nothing here sends anything off the machine."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

PROJECT = "delaysim"


@dataclass(frozen=True)
class Labels:
    """What a tracker shows of a run."""

    name: str
    group: str
    key: str
    """The name and a suffix that a run started over does not share; the same in every leg."""
    config: Mapping[str, Any]


@dataclass(frozen=True)
class Tracker:
    """One open run of a tracker."""

    log: Callable[[Mapping[str, float], int], None]
    """Values by name, and the step."""
    close: Callable[[], None]


def tensorboard(path: Path, _labels: Labels) -> Tracker:
    """Event files in the run directory, flushed at every event so that a kill takes none."""
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(path / "tensorboard"))

    def log(values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            writer.add_scalar(name, value, step)
        writer.flush()

    return Tracker(log, writer.close)


def wandb(path: Path, labels: Labels) -> Tracker:
    """Offline files in the run directory unless WANDB_MODE says otherwise; numbers only, no code, host or console."""
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    import wandb

    private = {"disable_git": True, "disable_code": True, "x_disable_meta": True, "x_disable_machine_info": True}
    quiet = {"console": "off", "silent": True, "x_disable_stats": True}
    often = {"x_transaction_log_flush_interval": 0.1}  # [s]: what a kill takes
    mode: Any = os.environ.get("WANDB_MODE", "offline")
    run = wandb.init(
        project=os.environ.get("WANDB_PROJECT", PROJECT), id=labels.key, name=labels.name, group=labels.group,
        config=dict(labels.config), resume="allow", mode=mode,
        dir=os.environ.get("WANDB_DIR", path), settings=wandb.Settings(**private, **quiet, **often),
    )  # fmt: skip
    return Tracker(lambda values, step: run.log(dict(values), step=step), run.finish)


def trackio(_path: Path, labels: Labels) -> Tracker:
    """The local database that `trackio show` reads; TRACKIO_DIR moves it."""
    with redirect_stdout(StringIO()), _no_hub():
        import trackio

        run = trackio.init(
            project=PROJECT, name=labels.key, group=labels.group, config=dict(labels.config), resume="allow",
            embed=False, auto_log_gpu=False, auto_log_cpu=False,
        )  # fmt: skip

    def close() -> None:
        with redirect_stdout(StringIO()):
            trackio.finish()

    return Tracker(lambda values, step: run.log(dict(values), step=step), close)


@contextmanager
def _no_hub() -> Iterator[None]:
    """Keep trackio from asking the hub whose token this machine has."""
    from huggingface_hub import constants

    before, constants.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE, True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


TRACKERS: dict[str, Callable[[Path, Labels], Tracker]] = {
    "tensorboard": tensorboard,
    "wandb": wandb,
    "trackio": trackio,
}
