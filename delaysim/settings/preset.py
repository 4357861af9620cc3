"""What a preset of a real system needs of the rest of the configuration. No torch."""

from typing import Any

from delaysim.errors import UserError
from delaysim.presets import discover
from delaysim.presets.base import in_words, knobs_of
from delaysim.settings.bounds import at_least
from delaysim.settings.config import Config

SUITE = "simulated_async"
"""The suite that a preset is one of."""


def check_preset(cfg: Config) -> None:
    """Raise UserError at a suite that has no room for a preset, and at the first knob that cannot be meant."""
    if cfg.preset is None:
        return
    if cfg.suite_name != SUITE:
        raise UserError(f"+preset={cfg.preset.name}: is of the suite {SUITE}; drop +suite={cfg.suite_name}")
    for name, value in knobs_of(cfg.preset).items():
        at_least(f"preset.{name}", value, 0)
    if cfg.clock.workers is not None and cfg.clock.workers < 1:
        raise UserError(f"+preset={in_words(cfg.preset)} leaves nothing in generation; give larger numbers")


def own(name: str, knobs: Any, groups: int, group_size: int) -> Any:
    """The number of the clock that a preset makes of its knobs."""
    return getattr(discover()[knobs.name], name)(knobs, groups, group_size)
