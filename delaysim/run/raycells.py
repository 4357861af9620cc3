"""The cells of a sweep as tasks of a Ray cluster: resources, retries and results are Ray's. Needs the extra `ray`."""

import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from delaysim.errors import UserError
from delaysim.files import cache_root
from delaysim.run.cells import Answer, Cell, run_cell
from delaysim.run.provenance import COMMAND, command
from delaysim.run.runner import Ended

INTERRUPT_S = 60.0
"""After Ctrl-C the cells of the cluster have this long to save their state [wall seconds]."""

CONNECT_S = 10.0
"""A cluster that is there answers within this time [wall seconds]."""


@dataclass(frozen=True)
class RayConf:
    """conf/hydra/launcher/ray.yaml."""

    address: str
    """Of a running cluster: auto, or host:port; local starts one on this machine."""
    cpus: float
    """Processor cores that a cell holds."""
    gpus: float
    """Devices that a cell holds."""
    retries: int
    """How often a cell starts again whose worker died; it goes on from its last checkpoint."""


def run_on_ray(cells: Sequence[Cell], conf: RayConf, tell: Callable[[int, Answer], None]) -> None:
    """Run cells wherever the cluster has room, and tell of each as it ends.

    Every node reads and writes the cells' directories: they lie on a file system that all share, under the same path.
    Raises UserError where there is no cluster, KeyboardInterrupt after Ctrl-C once the cells have saved their state.
    """
    ray = _connected(conf.address)
    try:
        resources = {"num_cpus": conf.cpus, "num_gpus": conf.gpus}
        task = ray.remote(**resources, max_retries=conf.retries, scheduling_strategy="SPREAD")(_cell_here)
        place = {"DELAYSIM_CACHE": str(cache_root().absolute()), COMMAND: command()}
        waiting = {task.remote(cell, Path.cwd(), place): number for number, cell in enumerate(cells)}
        try:
            _collect(ray, cells, waiting, tell)
        except KeyboardInterrupt:
            _interrupt(ray, waiting)
            raise
    finally:
        ray.shutdown()


def _collect(ray: Any, cells: Sequence[Cell], waiting: dict[Any, int], tell: Callable[[int, Answer], None]) -> None:
    while waiting:
        (done,), _ = ray.wait(list(waiting), num_returns=1)
        number = waiting.pop(done)
        try:
            answer: Answer = ray.get(done)
        except ray.exceptions.RayError as error:
            lines = str(error).strip().splitlines()  # an error in a task comes with its traceback
            said = lines[-1] if isinstance(error, ray.exceptions.RayTaskError) else lines[0]
            answer = Ended(cells[number].path, "failed", f"Ray gave it up: {said}")
        tell(number, answer)


def _interrupt(ray: Any, waiting: dict[Any, int]) -> None:
    """Cancel what has not begun, and let what runs save its state."""
    for task in waiting:
        ray.cancel(task)
    ray.wait(list(waiting), num_returns=len(waiting), timeout=INTERRUPT_S)


def _cell_here(cell: Cell, folder: Path, place: dict[str, str]) -> Answer:
    """A task on some node: the cell runs in a process of its own, as everywhere."""
    import ray

    os.chdir(folder)
    os.environ.update(place | {"DELAYSIM_NODE": ray.get_runtime_context().get_node_id()[:8]})
    try:
        return run_cell(cell.cfg, cell.path)
    except UserError as error:
        return error


def _connected(address: str) -> Any:
    """The cluster. Raises UserError where Ray or the cluster is missing."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise UserError("hydra/launcher=ray needs Ray: pip install 'delaysim[ray]'") from error
    local = {"include_dashboard": False} if address == "local" else {}
    try:
        _answers(address)
        ray.init(address, log_to_driver=False, logging_level="ERROR", **local)
    except OSError as error:
        raise UserError(
            f"hydra.launcher.address={address}: there is no Ray cluster; start one with ray start --head "
            "(docs/scaling.md), or give hydra.launcher.address=local"
        ) from error
    return ray


def _answers(address: str) -> None:
    """Raise OSError where nobody listens: Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=CONNECT_S).close()
