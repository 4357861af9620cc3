"""delaysim's sweeper and launchers, where Hydra looks for plugins. Imported at every start, so light."""

from collections.abc import Sequence
from typing import Any

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig


class CellSweeper(BasicSweeper):
    """Hydra's grid; the cells are composed once, and those that are the same run are launched once."""

    def sweep(self, arguments: list[str]) -> None:
        """Launch the grid of these overrides and of `hydra.sweeper.params`; the command line's values win."""
        from delaysim.cli.sweep import sweep

        assert self.hydra_context is not None
        assert self.config is not None
        assert self.launcher is not None
        parser = OverridesParser.create(config_loader=self.hydra_context.config_loader)
        overrides = parser.parse_overrides([*self._parse_config(), *arguments])
        (jobs,) = self.split_arguments(overrides, None)
        sweep(self.config, self.hydra_context, self.launcher, jobs)


class CellLauncher(Launcher):
    """Cells on this machine, `jobs` at once."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Nothing: the sweeper has composed the cells."""

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run the cells; KeyboardInterrupt once they have saved their state."""
        from delaysim.cli.sweep import launch
        from delaysim.run.cells import run_cells

        return launch(job_overrides, lambda cells, tell: run_cells(cells, self._jobs, tell))


class RayLauncher(Launcher):
    """Cells as tasks of a Ray cluster, on Ray's own interface."""

    def __init__(self, **settings: Any) -> None:
        self._settings = settings

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Nothing: the sweeper has composed the cells."""

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run the cells; KeyboardInterrupt once they have saved their state."""
        from delaysim.cli.sweep import launch
        from delaysim.run.raycells import RayConf, run_on_ray

        return launch(job_overrides, lambda cells, tell: run_on_ray(cells, RayConf(**self._settings), tell))
