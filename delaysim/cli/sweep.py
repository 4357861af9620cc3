"""A sweep under any launcher: compose the grid, drop what is the same run, launch, collect the ends. No torch."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hydra.core.utils import JobReturn, JobStatus
from hydra.errors import HydraException
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from delaysim.cli.compose import console, run_here, tried
from delaysim.cli.grid import Composer
from delaysim.cli.held import held
from delaysim.cli.session import cell_text, session
from delaysim.errors import UserError
from delaysim.run.cells import Answer, Cell
from delaysim.run.progress import clock_time
from delaysim.run.records import RunDir
from delaysim.run.runner import Ended, is_finished
from delaysim.run.sweepfile import announced

Pool = Callable[[Sequence[Cell], Callable[[int, Answer], None]], None]
"""Runs cells somewhere, and tells of each as it ends."""

PACED_AFTER = 3
"""Cells after which their pace says something: the first pays for the start."""

_cells: dict[tuple[str, ...], Cell] = {}
"""Composed by the sweeper for the launchers of this process."""


def sweep(config: DictConfig, context: HydraContext, launcher: Launcher, jobs: Sequence[Sequence[str]]) -> None:
    """Run every cell of a grid; how each ended is in the session."""
    cells = _compose(Composer(context.config_loader, config), jobs)
    session.notes += held([cell.cfg for cell in cells])
    for cell in cells:
        if cell.cfg.mode != "train":
            session.tell(cell.words, tried(lambda cell=cell: run_here(cell.cfg)))  # type: ignore[misc]
    train = [cell for cell in cells if cell.cfg.mode == "train"]
    if train:
        session.cells = len(cells) + len(session.outcomes)
        with announced(_name(config), train):
            _launch(launcher, _unfinished(train))


def _compose(composer: Composer, jobs: Sequence[Sequence[str]]) -> list[Cell]:
    """The cells that can run, each run once."""
    found: dict[Path, Cell] = {}
    double, common = 0, set[str]().union(*jobs).intersection(*jobs) if len(jobs) > 1 else set[str]()
    for words in jobs:
        name = " ".join(word for word in words if word not in common)
        try:
            cell = composer.cell(name, words)
        except UserError as error:
            session.tell(name, error)
            continue
        double += cell.path in found
        if cell.path not in found:
            found[cell.path] = _cells[tuple(words)] = cell
    if double:
        session.notes.append(f"{double} of {len(jobs)} cells are the same run as another and run once")
    return list(found.values())


def _name(config: DictConfig) -> str:
    return str(config.hydra.runtime.choices.get("sweep") or "sweep")


def _unfinished(cells: Sequence[Cell]) -> list[Cell]:
    """The cells to launch; no process is started for what was finished before."""
    todo = []
    for cell in cells:
        with suppress(UserError):  # the cell will say it
            if is_finished(cell.cfg, RunDir(cell.path)):
                session.tell(cell.words, Ended(cell.path, "skipped"))
                continue
        todo.append(cell)
    if len(todo) < len(cells):
        console.print(f"{len(cells) - len(todo)} of {len(cells)} cells were finished before", markup=False)
    return todo


def _launch(launcher: Launcher, cells: Sequence[Cell]) -> None:
    if not cells:
        return
    by_path = {cell.path: words for words, cell in _cells.items()}
    try:
        returned = launcher.launch([by_path[cell.path] for cell in cells], 0)
        for cell, job in zip(cells, returned, strict=True):
            session.tell(cell.words, job.return_value)
    except KeyboardInterrupt:
        session.interrupted = True
    except (HydraException, OmegaConfBaseException, UserError):
        raise
    except Exception as error:  # a launcher's own, such as a worker that died: what the cells left says the rest
        said = str(error).strip() or type(error).__name__
        session.notes.append(f"the launcher ended early: {said.splitlines()[-1]}")
    for cell in cells:
        if cell.words not in session.outcomes and (ended := on_disk(cell)):
            session.tell(cell.words, ended)


def on_disk(cell: Cell) -> Ended | None:
    """How a run ended whose worker cannot say so any more; None where it never began."""
    state = RunDir(cell.path).status().get("state")
    if state is None:
        return None
    if state != "running":
        return Ended(cell.path, state, RunDir(cell.path).status().get("error"))
    return Ended(cell.path, "interrupted" if session.interrupted else "failed", "its worker is gone")


def launch(job_overrides: Sequence[Sequence[str]], pool: Pool) -> list[JobReturn]:
    """What a launcher of ours does: run the composed cells in a pool, printing a line for each."""
    cells = [_cells[tuple(words)] for words in job_overrides]
    told = _Told(cells)
    pool(cells, told.tell)
    return [_returned(cell, session.outcomes[cell.words]) for cell in cells]


def _returned(cell: Cell, outcome: Any) -> JobReturn:
    done = JobReturn(overrides=cell.words.split(), status=JobStatus.COMPLETED)
    done.return_value = outcome
    return done


class _Told:
    """Prints the cells as they end, with the time that is left at their pace."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self._cells, self._started, self._ended = cells, time.monotonic(), 0
        self._left = sum(map(_work, cells))
        self._done, self._stopped = 0, False

    def tell(self, number: int, answer: Answer) -> None:
        cell = self._cells[number]
        session.tell(cell.words, answer)
        self._ended += 1
        self._stopped |= isinstance(answer, Ended) and answer.state == "interrupted"
        self._left -= _work(cell)
        self._done += 0 if isinstance(answer, Ended) and answer.state == "skipped" else _work(cell)
        console.print(f"[{self._ended}/{len(self._cells)}] {cell_text(cell.words, answer)}{self._time()}", markup=False)

    def _time(self) -> str:
        if not self._left or not self._done or self._ended < PACED_AFTER or self._stopped:
            return ""
        seconds = (time.monotonic() - self._started) / self._done * self._left
        return f"; {clock_time(seconds)} left"


def _work(cell: Cell) -> int:
    return cell.cfg.updates * cell.cfg.B * cell.cfg.G
