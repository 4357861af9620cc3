"""The cells of a grid, each composed as Hydra composes it, with the work that cells share done once. No torch."""

from collections.abc import Sequence
from copy import deepcopy

from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from delaysim.cli.compose import to_config
from delaysim.run.cells import Cell
from delaysim.settings.identity import run_path


class Composer:
    """Turns the overrides of one job into its cell.

    Hydra takes a quarter of a second for a configuration, most of it for files and defaults. Values (`D=1`) are set on
    what was composed once for the same choices of files (`estimator=gmc`); where one cannot be set so, Hydra composes
    the whole and says why.
    """

    def __init__(self, loader: ConfigLoader, master: DictConfig) -> None:
        self._loader, self._master = loader, master
        self._parser = OverridesParser.create(config_loader=loader)
        self._composed: dict[tuple[str, ...], DictConfig] = {}
        self._is_group: dict[str, bool] = {}

    def cell(self, name: str, overrides: Sequence[str]) -> Cell:
        """The cell of one job, called `name`. Raises UserError; Hydra's own errors for settings that do not exist."""
        cfg = to_config(self.compose(overrides))
        return Cell(name, cfg, run_path(cfg))

    def compose(self, overrides: Sequence[str]) -> DictConfig:
        """The configuration of one job, without Hydra's own part."""
        parsed = self._parser.parse_overrides(list(overrides))
        values = [override for override in parsed if self._is_value(override)]
        rest = tuple(str(o.input_line) for o in parsed if not self._is_value(o))
        composed = deepcopy(self._base(rest))
        try:
            for override in values:
                OmegaConf.update(composed, override.key_or_group, override.value(), merge=True)
        except OmegaConfBaseException:
            return self._whole(overrides)
        return composed

    def _is_value(self, override: Override) -> bool:
        """Whether it sets a value that a composed configuration has, and chooses no file."""
        key = override.key_or_group
        if override.type != OverrideType.CHANGE or override.package is not None:
            return False
        if key not in self._is_group:
            self._is_group[key] = bool(self._loader.get_group_options(key))
        return not self._is_group[key]

    def _base(self, choices: tuple[str, ...]) -> DictConfig:
        if choices not in self._composed:
            self._composed[choices] = self._whole(choices)
        return self._composed[choices]

    def _whole(self, overrides: Sequence[str]) -> DictConfig:
        composed = self._loader.load_sweep_config(self._master, list(overrides))
        with open_dict(composed):
            composed.pop("hydra")
        return composed
